#include "sim/trace/generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/error.hpp"
#include "sim/trace/rank_stream.hpp"
#include "sim/trace/session_writer.hpp"

namespace rackcast {
namespace {

// A few long sessions hold much of a load; their lengths keep to the middle of their strata.
constexpr double session_jitter = 0.3;

// Session-level draws, one entry a session.
struct SessionDraws {
  std::vector<double> turns, start, window;  // ranks
  std::vector<double> growth, output;        // levels: normal scores
  std::vector<std::uint32_t> groups;         // counts
};

struct GroupPlan {
  std::uint32_t requests = 1;
  double seconds = 1;
};

struct Batch {
  std::uint32_t turn = 0;  // main request that starts it
  std::vector<GroupPlan> groups;
  bool background = false;
  double start_s = 0;
};

struct SideCall {
  double start_s = 0;
  Context context;  // what it keeps of the thread; empty: nothing
};

class Generator {
 public:
  Generator(const LoadShape& shape, std::uint64_t seed)
      : shape_(shape), random_(seed), growth_(random_), output_(random_), gap_(random_), event_(random_), side_(random_),
        group_growth_(random_), group_output_(random_), sibling_(random_) {}

  Trace generate(std::uint64_t seed) {
    draw_sessions();
    draw_groups();
    trace_.source = fmt::format("generated {} seed {}", shape_.name, seed);
    trace_.models = {"main", "side"};
    for (std::size_t s = 0; s < shape_.sessions; ++s) session(s);
    trace_.content_hash = content_hash();
    return std::move(trace_);
  }

 private:
  void draw_sessions() {
    const std::size_t n = shape_.sessions;
    draws_.turns = stratified_ranks(n, random_, session_jitter);
    draws_.start = stratified_ranks(n, random_);
    draws_.window = stratified_ranks(n, random_);
    draws_.growth = levels(shape_.growth_turns_rank);
    draws_.output = levels(shape_.output_turns_rank);
    // Sessions with subagents are the ones of highest rank in a draw that leans towards long sessions.
    const std::vector<double> rank = correlated_ranks(draws_.turns, shape_.groups_turns_rank, random_);
    draws_.groups.assign(n, 0);
    for (std::size_t s = 0; s < n; ++s) {
      const double inside = (rank[s] - (1 - shape_.group_session_share)) / std::max(1e-9, shape_.group_session_share);
      if (inside > 0) draws_.groups[s] = static_cast<std::uint32_t>(std::lround(std::max(1.0, shape_.groups.at(inside))));
    }
  }

  // Scores of mean 0 and variance 1 over all turns, so that requests have the curve's percentiles whatever the pairing.
  std::vector<double> levels(double turns_rank) {
    std::vector<double> level = correlated_ranks(draws_.turns, turns_rank, random_);
    double weights = 0, sum = 0, squares = 0;
    for (std::size_t s = 0; s < level.size(); ++s) {
      level[s] = normal_quantile(level[s]);
      const double turns = shape_.turns.at(draws_.turns[s]);
      weights += turns;
      sum += turns * level[s];
      squares += turns * level[s] * level[s];
    }
    const double mean = sum / weights, spread = std::sqrt(std::max(1e-9, squares / weights - mean * mean));
    for (double& score : level) score = (score - mean) / spread;
    return level;
  }

  void draw_groups() {
    const std::size_t n = std::accumulate(draws_.groups.begin(), draws_.groups.end(), std::size_t{0});
    if (n == 0) return;
    const std::vector<double> requests = stratified_ranks(n, random_);
    const std::vector<double> seconds = correlated_ranks(requests, shape_.group_seconds_rank, random_);
    for (std::size_t g = 0; g < n; ++g)
      groups_.push_back({static_cast<std::uint32_t>(std::lround(std::max(1.0, shape_.group_requests.at(requests[g])))),
                         shape_.group_seconds.at(seconds[g])});
    std::size_t with = 0;
    for (const std::uint32_t count : draws_.groups) with += count > 0;
    at_once_ranks_ = stratified_ranks(with, random_);
  }

  void session(std::size_t s) {
    const auto turns = static_cast<std::uint32_t>(std::lround(std::max(1.0, shape_.turns.at(draws_.turns[s]))));
    SessionWriter writer(trace_, fmt::format("{}-{:04}", shape_.name, s), shape_.block_tokens);
    growth_level_ = draws_.growth[s];
    output_level_ = draws_.output[s];
    side_share_ = random_.uniform() < shape_.side_session_share ? shape_.side_share / shape_.side_session_share : 0;
    window_ = std::min(shape_.longest_input, shape_.window_tokens.at(draws_.window[s]));
    std::vector<Batch> batches = plan_batches(draws_.groups[s], turns);
    const Context system = writer.fresh(shape_.system_tokens);
    main_agent(writer, turns, shape_.start_tokens.at(draws_.start[s]), system, batches);
    subagents(writer, batches);
    writer.finish();
  }

  // Groups come in batches that start together, the largest first drawn; batches hang on turns all over the session.
  std::vector<Batch> plan_batches(std::uint32_t groups, std::uint32_t turns) {
    std::vector<Batch> batches;
    if (groups == 0) return batches;
    const double most = shape_.groups_at_once.at(at_once_ranks_[next_at_once_++]);
    std::uint32_t left = groups;
    while (left > 0) {
      Batch batch;
      const double size = batches.empty() ? most : 1 + std::floor(random_.uniform() * most);
      const auto count = std::min(left, static_cast<std::uint32_t>(std::max(1.0, std::round(std::min(size, most)))));
      for (std::uint32_t g = 0; g < count; ++g) batch.groups.push_back(groups_[next_group_++]);
      batch.turn = static_cast<std::uint32_t>(random_.below(turns));
      batch.background = random_.uniform() < shape_.background_share;
      left -= count;
      batches.push_back(std::move(batch));
    }
    std::stable_sort(batches.begin(), batches.end(), [](const Batch& a, const Batch& b) { return a.turn < b.turn; });
    return batches;
  }

  void main_agent(SessionWriter& writer, std::uint32_t turns, double start_tokens, const Context& system, std::vector<Batch>& batches) {
    std::vector<SideCall> sides;
    Context context = system;
    writer.extend(context, std::max<double>(shape_.block_tokens, start_tokens - shape_.system_tokens));
    double now_s = 0, busy_until_s = 0;
    auto batch = batches.begin();
    double gap_s = 0;
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      if (turn > 0) {
        const bool new_thread = gap_s > shape_.thread_gap_s && random_.uniform() < shape_.thread_share;
        if (new_thread) restart(writer, context, system);
        else advance(writer, context, system);
      }
      CallRecord call;
      call.start_s = now_s;
      call.output_tokens = draw_output();
      call.api_s = server_time(call.output_tokens);
      call.think_s = gap_s * shape_.think_share;
      writer.add(call, context);
      double end_s = now_s + call.api_s;
      // A side call takes one of the session's turns and starts while this call runs.
      if (turn + 1 < turns && random_.uniform() < side_share_) {
        ++turn;
        const bool deep = random_.uniform() < shape_.side_deep_share;
        sides.push_back({now_s + call.api_s * random_.uniform(0.1, 0.9), deep ? context : Context{}});
      }
      gap_s = shape_.gap_s.at(gap_.next());
      now_s = end_s + gap_s;
      for (; batch != batches.end() && batch->turn <= turn; ++batch) {
        batch->start_s = std::max(end_s + 0.1, busy_until_s);
        for (const GroupPlan& group : batch->groups) busy_until_s = std::max(busy_until_s, batch->start_s + group.seconds + 1);
        if (!batch->background) now_s = std::max(now_s, busy_until_s + 0.5);
      }
    }
    for (SideCall& side : sides) side_call(writer, side);
  }

  void restart(SessionWriter& writer, Context& context, const Context& system) {
    const double tokens = static_cast<double>(context.blocks) * shape_.block_tokens;
    if (random_.uniform() < shape_.thread_deep_share && tokens > 4 * shape_.system_tokens) {
      writer.truncate(context, tokens * random_.uniform(0.4, 0.49));
      writer.extend(context, shape_.growth_tokens.at(growth_.next()));
      return;
    }
    context = system;
    writer.extend(context, std::max<double>(shape_.block_tokens, shape_.thread_start_tokens.at(event_.next()) - shape_.system_tokens));
  }

  void advance(SessionWriter& writer, Context& context, const Context& system) {
    const double tokens = static_cast<double>(context.blocks) * shape_.block_tokens;
    const double growth = shape_.growth_tokens.at(growth_.next_like(growth_level_, shape_.growth_likeness));
    const double event = event_.next();
    if (event < shape_.compaction_share || tokens + growth > window_) {
      context = system;
      writer.extend(context, std::max<double>(shape_.block_tokens, shape_.compacted_tokens.at(random_.uniform()) - shape_.system_tokens));
      return;
    }
    if (event > 1 - shape_.rewrite_share) {
      const double cut = std::min(shape_.rewritten_tokens.at(random_.uniform()), tokens - shape_.system_tokens);
      writer.truncate(context, tokens - cut);
      writer.extend(context, cut + growth);
      return;
    }
    writer.extend(context, growth);
  }

  void side_call(SessionWriter& writer, SideCall& side) {
    CallRecord call;
    call.start_s = side.start_s;
    call.output_tokens = static_cast<std::uint32_t>(std::lround(std::max(1.0, shape_.group_output_tokens.at(group_output_.next()))));
    call.api_s = server_time(call.output_tokens);
    call.model = side.context.blocks > 0 ? 0 : 1;
    writer.extend(side.context, shape_.side_tokens.at(side_.next()));
    writer.add(call, side.context);
  }

  void subagents(SessionWriter& writer, const std::vector<Batch>& batches) {
    std::vector<Context> kinds;
    for (const Batch& batch : batches)
      for (std::size_t g = 0; g < batch.groups.size(); ++g) {
        // A kind seen before has its system prompt in the cache.
        const auto kind = static_cast<std::size_t>(random_.below(static_cast<std::uint64_t>(std::max(1.0, shape_.agent_kinds))));
        if (kind >= kinds.size()) kinds.push_back(writer.fresh(shape_.agent_system_tokens));
        group(writer, batch.groups[g], batch.start_s + 0.2 * static_cast<double>(g), kinds[std::min(kind, kinds.size() - 1)]);
      }
  }

  void group(SessionWriter& writer, const GroupPlan& plan, double start_s, const Context& system) {
    writer.begin_group(start_s, plan.seconds);
    std::uint32_t siblings = 0;
    const double share = random_.uniform() < shape_.sibling_group_share ? shape_.sibling_share / shape_.sibling_group_share : 0;
    for (std::uint32_t r = 2; r < plan.requests; ++r) siblings += random_.uniform() < share;
    const std::uint32_t calls = plan.requests - siblings;
    std::vector<CallRecord> chain(calls);
    double busy_s = 0, weights = 0;
    std::vector<double> gaps(calls, 0);
    for (std::uint32_t c = 0; c < calls; ++c) {
      chain[c].output_tokens = static_cast<std::uint32_t>(std::lround(std::max(1.0, shape_.group_output_tokens.at(group_output_.next()))));
      busy_s += chain[c].api_s = server_time(chain[c].output_tokens);
      if (c > 0) weights += gaps[c] = shape_.group_gap_s.at(random_.uniform());
    }
    // The group's length is given: calls take at most 95% of it, gaps the rest.
    const double faster = std::min(1.0, 0.95 * plan.seconds / busy_s);
    const double idle_s = plan.seconds - busy_s * faster;
    double now_s = start_s;
    Context context = system;
    writer.extend(context, shape_.group_start_tokens.at(random_.uniform()));
    const double level = random_.normal();
    std::vector<SideCall> sides;
    for (std::uint32_t c = 0; c < calls; ++c) {
      const double gap_s = c > 0 ? idle_s * gaps[c] / weights : 0;
      now_s += gap_s;
      if (c > 0) {
        const double growth = shape_.group_growth_tokens.at(group_growth_.next_like(level, shape_.group_growth_likeness));
        if (static_cast<double>(context.blocks) * shape_.block_tokens + growth > shape_.group_window_tokens) {
          context = system;
          writer.extend(context, shape_.group_start_tokens.at(random_.uniform()));
        } else {
          writer.extend(context, growth);
        }
      }
      chain[c].start_s = now_s;
      chain[c].api_s *= faster;
      chain[c].think_s = gap_s * shape_.think_share;
      writer.add(chain[c], context);
      // Siblings start while a call runs that has a successor, so that none can pass for the chain's continuation.
      const std::uint32_t places = calls - 1 - c;
      while (siblings > 0 && places > 0 && random_.uniform() * places < siblings) {
        --siblings;
        const bool deep = random_.uniform() < shape_.sibling_deep_share;
        sides.push_back({now_s + chain[c].api_s * random_.uniform(0.1, 0.9), deep ? context : system});
      }
      now_s += chain[c].api_s;
    }
    for (SideCall& side : sides) sibling_call(writer, side);
    writer.end_group();
  }

  void sibling_call(SessionWriter& writer, SideCall& side) {
    CallRecord call;
    call.start_s = side.start_s;
    call.output_tokens = static_cast<std::uint32_t>(std::lround(std::max(1.0, shape_.group_output_tokens.at(group_output_.next()))));
    call.api_s = server_time(call.output_tokens);
    writer.extend(side.context, shape_.sibling_tokens.at(sibling_.next()));
    writer.add(call, side.context);
  }

  std::uint32_t draw_output() {
    const double tokens = shape_.output_tokens.at(output_.next_like(output_level_, shape_.output_likeness));
    return static_cast<std::uint32_t>(std::lround(std::max(1.0, tokens)));
  }
  double server_time(std::uint32_t output_tokens) const { return shape_.first_token_s + output_tokens / shape_.output_rate_per_s; }

  std::uint64_t content_hash() const {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto mix = [&hash](std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3; };
    for (const TraceRequest& r : trace_.requests) {
      mix((std::uint64_t{r.input_tokens} << 32) | r.output_tokens);
      mix(static_cast<std::uint64_t>(std::llround(r.start_s * 1e3)));
    }
    for (const HashRun& run : trace_.runs) mix((std::uint64_t{run.first} << 32) | run.count);
    return hash;
  }

  const LoadShape& shape_;
  NumpyRandom random_;
  Trace trace_;
  SessionDraws draws_;
  std::vector<GroupPlan> groups_;
  std::vector<double> at_once_ranks_;
  std::size_t next_group_ = 0, next_at_once_ = 0;
  double growth_level_ = 0, output_level_ = 0, window_ = 0, side_share_ = 0;
  RankStream growth_, output_, gap_, event_, side_, group_growth_, group_output_, sibling_;
};

}  // namespace

Trace generate_trace(const LoadShape& shape, std::uint64_t seed) { return Generator(shape, seed).generate(seed); }

}  // namespace rackcast
