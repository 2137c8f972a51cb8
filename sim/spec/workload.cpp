#include "sim/spec/workload.hpp"

#include "sim/trace/mixed_load.hpp"

namespace rackcast {

const std::vector<Choice> workload_kinds = {
    {"agentx", "lanes replay recorded agent sessions, turn after turn, with their think times"},
    {"open_loop", "requests come at recorded or random times, whatever the server does"},
    {"closed_loop", "each user sends the next request when the last one is done"},
    {"mix", "several of them at once, each with its share of the lanes"}};
const std::vector<Choice> arrival_kinds = {{"recorded", "as in the trace"}, {"poisson", "at random times of the given rate"}};
const std::vector<Choice> warmup_modes = {{"replay", "primers and warm-up requests are served before the window starts"},
                                          {"preload", "prefix caches start with what warm-up would leave; no time is simulated for it"}};

// Beyond these a value is a slip: counts would not fit their integers, or the clock would stand still.
constexpr std::int64_t most_tokens = std::int64_t{1} << 30;
constexpr double longest_s = 100 * 86400.0;

static void agentx_fields(Visitor& v, WorkloadSpec& w) {
  v.field("start_min", w.start_min, "earliest start of a lane's first session, as share of its span")
      .require(w.start_min >= 0 && w.start_min < 1, "must be in [0, 1)");
  v.field("start_max", w.start_max, "latest start of a lane's first session, as share of its span")
      .require(w.start_max >= w.start_min && w.start_max <= 1, "must be in [start_min, 1]");
  v.field("warmup_requests", w.warmup_requests, "per lane, one output token each, after the primers")
      .require(w.warmup_requests >= 0 && w.warmup_requests <= 100000, "must be 0 to 100000");
  v.choice("warmup", w.warmup, warmup_modes, "how caches are filled before the window");
  v.field("tree_idle_cap", w.tree_idle_cap, "a session tree idle for longer goes on; 0: no guard")
      .require(w.tree_idle_cap.value() >= 0, "must be >= 0 s");
  v.field("system_idle_cap", w.system_idle_cap, "a system idle for longer goes on; 0: no guard")
      .require(w.system_idle_cap.value() >= 0, "must be >= 0 s");
  v.field("think_time", w.think_time, "false: the next turn follows at once");
  v.field("output_limit", w.output_limit, "most output tokens of a request; 0: as recorded; 1: prefill only")
      .require(w.output_limit >= 0, "must be >= 0");
}

static void length_fields(Visitor& v, WorkloadSpec& w) {
  v.choice("arrivals", w.arrivals, arrival_kinds, "open_loop: when requests come");
  v.field("rate", w.rate, "open_loop, poisson: requests per second").require(w.rate.value() >= 0 && w.rate.value() <= 1e6, "must be 0 to 1e6 /s");
  v.field("requests", w.requests, "stop after this many; 0: the duration rules")
      .require(w.requests >= 0 && w.requests <= 1000000000, "must be 0 to 1000000000");
  v.field("warmup_count", w.warmup_count, "open_loop, closed_loop: first requests that are not counted")
      .require(w.warmup_count >= 0 && w.warmup_count <= 1000000000, "must be 0 to 1000000000");
  v.field("input", w.input, "nominal input length").require(w.input.count > 0 && w.input.count <= most_tokens, "must be 1 to 1024M");
  v.field("output", w.output, "nominal output length").require(w.output.count > 0 && w.output.count <= most_tokens, "must be 1 to 1024M");
  v.field("range_ratio", w.range_ratio, "lengths are uniform in [ratio * nominal, nominal]")
      .require(w.range_ratio > 0 && w.range_ratio <= 1, "must be in (0, 1]");
  v.field("turns", w.turns, "requests of a user's session that share a growing prefix").require(w.turns > 0, "must be > 0");
  v.field("shared_prefix", w.shared_prefix, "share of the input that is a common prefix")
      .require(w.shared_prefix >= 0 && w.shared_prefix < 1, "must be in [0, 1)");
  v.field("prefix_groups", w.prefix_groups, "number of different common prefixes").require(w.prefix_groups > 0, "must be > 0");
}

void fields(Visitor& v, MixPart& p) {
  v.field("share", p.share, "of the lanes, relative to the other parts").require(p.share > 0, "must be > 0");
  v.choice("kind", p.kind, workload_kinds, "agentx or closed_loop")
      .require(p.kind == WorkloadKind::agentx || p.kind == WorkloadKind::closed_loop, "must be agentx or closed_loop");
  v.field("trace", p.trace, "agentx: as workload.trace").require(!p.trace.empty(), "must not be empty");
  v.field("input", p.input, "closed_loop: nominal input length").require(p.input.count > 0 && p.input.count <= most_tokens, "must be 1 to 1024M");
  v.field("output", p.output, "closed_loop: nominal output length").require(p.output.count > 0 && p.output.count <= most_tokens, "must be 1 to 1024M");
  v.field("range_ratio", p.range_ratio, "closed_loop: lengths are uniform in [ratio * nominal, nominal]")
      .require(p.range_ratio > 0 && p.range_ratio <= 1, "must be in (0, 1]");
  v.field("turns", p.turns, "closed_loop: requests of a user's session").require(p.turns > 0, "must be > 0");
  v.field("shared_prefix", p.shared_prefix, "closed_loop: share of the input that is a common prefix")
      .require(p.shared_prefix >= 0 && p.shared_prefix < 1, "must be in [0, 1)");
  v.field("prefix_groups", p.prefix_groups, "closed_loop: number of different common prefixes").require(p.prefix_groups > 0, "must be > 0");
}

void fields(Visitor& v, WorkloadSpec& w) {
  v.choice("kind", w.kind, workload_kinds, "who asks, and when");
  v.field("trace", w.trace,
          "generated-v1.0; kv-cache-tester: the recorded one under RACKCAST_DATA, or generated-v1.0 with a note where it is not there; "
          "or the path of a file or folder")
      .require(!w.trace.empty(), "must not be empty");
  v.field("concurrency", w.concurrency, "lanes (agentx) or users (closed_loop)")
      .require(w.concurrency > 0 && w.concurrency <= 1000000, "must be 1 to 1000000");
  v.field("duration", w.duration, "measured window").require(w.duration.value() > 0 && w.duration.value() <= longest_s, "must be > 0 s, at most 2400 h");
  v.field("grace", w.grace, "after the window, requests in flight may finish and count")
      .require(w.grace.value() >= 0 && w.grace.value() <= longest_s, "must be 0 to 2400 h");
  agentx_fields(v, w);
  length_fields(v, w);
  v.group("experts", w.experts, "which experts the tokens choose");
  v.list("mix", w.mix, "the loads of kind mix");
  v.rule("mix", (w.kind == WorkloadKind::mix) == !w.mix.empty(), "kind mix needs parts, and only it has parts");
  v.rule("mix", w.kind != WorkloadKind::mix || static_cast<std::size_t>(w.concurrency) >= w.mix.size(), "needs at least one lane a part");
  v.rule("rate", w.kind != WorkloadKind::open_loop || w.arrivals != ArrivalKind::poisson || w.rate.value() > 0,
         "poisson arrivals need a rate > 0, as in '20 /s'");
}

std::vector<WorkloadSpec> parts_of(const WorkloadSpec& w) {
  if (w.kind != WorkloadKind::mix) return {w};
  std::vector<double> shares;
  for (const MixPart& part : w.mix) shares.push_back(part.share);
  const std::vector<std::uint32_t> lanes = lanes_by_share(static_cast<std::uint32_t>(w.concurrency), shares);
  std::vector<WorkloadSpec> parts;
  for (std::size_t i = 0; i < w.mix.size(); ++i) {
    const MixPart& part = w.mix[i];
    WorkloadSpec one = w;
    one.mix.clear();
    one.kind = part.kind;
    one.trace = part.trace;
    one.concurrency = static_cast<int>(lanes[i]);
    one.input = part.input;
    one.output = part.output;
    one.range_ratio = part.range_ratio;
    one.turns = part.turns;
    one.shared_prefix = part.shared_prefix;
    one.prefix_groups = part.prefix_groups;
    parts.push_back(std::move(one));
  }
  return parts;
}

}  // namespace rackcast
