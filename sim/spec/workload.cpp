#include "sim/spec/workload.hpp"

namespace rackcast {

const std::vector<Choice> workload_kinds = {
    {"agentx", "lanes replay recorded agent sessions, turn after turn, with their think times"},
    {"open_loop", "requests come at recorded or random times, whatever the server does"},
    {"closed_loop", "each user sends the next request when the last one is done"}};
const std::vector<Choice> arrival_kinds = {{"recorded", "as in the trace"}, {"poisson", "at random times of the given rate"}};
const std::vector<Choice> warmup_modes = {{"replay", "primers and warm-up requests are served before the window starts"},
                                          {"preload", "prefix caches start with what warm-up would leave; no time is simulated for it"}};

static void agentx_fields(Visitor& v, WorkloadSpec& w) {
  v.field("start_min", w.start_min, "earliest start of a lane's first session, as share of its span")
      .require(w.start_min >= 0 && w.start_min < 1, "must be in [0, 1)");
  v.field("start_max", w.start_max, "latest start of a lane's first session, as share of its span")
      .require(w.start_max >= w.start_min && w.start_max <= 1, "must be in [start_min, 1]");
  v.field("warmup_requests", w.warmup_requests, "per lane, one output token each, after the primers")
      .require(w.warmup_requests >= 0, "must be >= 0");
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
  v.field("rate", w.rate, "open_loop, poisson: requests per second").require(w.rate.value() >= 0, "must be >= 0 /s");
  v.field("requests", w.requests, "stop after this many; 0: the duration rules").require(w.requests >= 0, "must be >= 0");
  v.field("warmup_count", w.warmup_count, "open_loop, closed_loop: first requests that are not counted")
      .require(w.warmup_count >= 0, "must be >= 0");
  v.field("input", w.input, "nominal input length").require(w.input.count > 0, "must be > 0");
  v.field("output", w.output, "nominal output length").require(w.output.count > 0, "must be > 0");
  v.field("range_ratio", w.range_ratio, "lengths are uniform in [ratio * nominal, nominal]")
      .require(w.range_ratio > 0 && w.range_ratio <= 1, "must be in (0, 1]");
  v.field("turns", w.turns, "requests of a user's session that share a growing prefix").require(w.turns > 0, "must be > 0");
  v.field("shared_prefix", w.shared_prefix, "share of the input that is a common prefix")
      .require(w.shared_prefix >= 0 && w.shared_prefix < 1, "must be in [0, 1)");
  v.field("prefix_groups", w.prefix_groups, "number of different common prefixes").require(w.prefix_groups > 0, "must be > 0");
}

void fields(Visitor& v, WorkloadSpec& w) {
  v.choice("kind", w.kind, workload_kinds, "who asks, and when");
  v.field("trace", w.trace,
          "generated-v1.0; kv-cache-tester: the recorded one under RACKCAST_DATA, or generated-v1.0 with a note where it is not there; "
          "or the path of a file or folder")
      .require(!w.trace.empty(), "must not be empty");
  v.field("concurrency", w.concurrency, "lanes (agentx) or users (closed_loop)").require(w.concurrency > 0, "must be > 0");
  v.field("duration", w.duration, "measured window").require(w.duration.value() > 0, "must be > 0 s");
  v.field("grace", w.grace, "after the window, requests in flight may finish and count").require(w.grace.value() >= 0, "must be >= 0 s");
  agentx_fields(v, w);
  length_fields(v, w);
  v.rule("rate", w.kind != WorkloadKind::open_loop || w.arrivals != ArrivalKind::poisson || w.rate.value() > 0,
         "poisson arrivals need a rate > 0, as in '20 /s'");
}

}  // namespace rackcast
