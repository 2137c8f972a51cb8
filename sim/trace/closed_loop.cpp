#include "sim/trace/closed_loop.hpp"

#include <algorithm>
#include <array>

#include "sim/base/error.hpp"

namespace rackcast {
namespace {

constexpr std::uint32_t block_tokens = 64;
constexpr std::uint64_t block_ids = std::uint64_t{1} << 32;

struct User {
  std::array<HashRun, 2> runs;  // common prefix, own blocks
  std::uint32_t turns_done = 0;
  std::uint32_t blocks_seen = 0;     // of the session, by an infinite cache
  std::uint32_t history_tokens = 0;  // input and output of the turns done
  std::uint32_t answer_tokens = 0;   // of the turn in flight
  std::uint32_t turn = 0;            // counts this user's requests; upper half of the request id
};

class ClosedLoop final : public Load {
 public:
  explicit ClosedLoop(const ClosedLoopOptions& options)
      : options_(options), random_(options.seed), users_(options.users), private_blocks_(blocks_of_a_session(options)) {
    // Without turns or a common prefix no block is ever asked for again, so none needs an identity.
    shares_blocks_ = options.turns > 1 || options.shared_prefix > 0;
    prefix_blocks_ = static_cast<std::uint32_t>(options.shared_prefix * options.lengths.input_tokens) / block_tokens;
    next_block_ = std::uint64_t{prefix_blocks_} * options.prefix_groups;
    if (next_block_ + private_blocks_ >= block_ids) throw UserError("closed-loop load: the common prefixes and one session hold more than 2^32 blocks");
    for (std::uint32_t user = 0; user < options.users; ++user) ready_.push_back(user);
  }

  double next_time_s() const override { return ready_.empty() || exhausted() ? never_s : ready_since_s_; }

  void take_due(double now_s, std::vector<LoadRequest>& out) override {
    if (now_s < ready_since_s_) return;
    for (const std::uint32_t user : ready_) {
      if (exhausted()) break;
      out.push_back(next_request(user));
    }
    ready_.clear();
  }

  void finished(std::uint64_t id, double now_s) override {
    const auto user = static_cast<std::uint32_t>(id);
    User& state = users_[user];
    state.history_tokens += state.answer_tokens;
    if (++state.turns_done == options_.turns) state.turns_done = 0;
    ready_.push_back(user);
    ready_since_s_ = now_s;
  }

  LoadPhase phase() const override { return given_ < options_.warmup_requests ? LoadPhase::warmup : LoadPhase::measured; }
  bool exhausted() const override {
    return stopped_ || (options_.requests > 0 && given_ >= options_.warmup_requests + options_.requests);
  }
  void stop() override { stopped_ = true; }
  void preload(const std::function<void(const LoadRequest&)>&) override { options_.warmup_requests = 0; }
  std::uint32_t lanes() const override { return options_.users; }

 private:
  static std::uint64_t blocks_of_a_session(const ClosedLoopOptions& o) {
    constexpr std::uint64_t longest_session = std::uint64_t{1} << 31;  // tokens
    const std::uint64_t tokens = std::uint64_t{o.turns} * (std::uint64_t{o.lengths.input_tokens} + o.lengths.output_tokens);
    if (tokens > longest_session) throw UserError("closed-loop load: turns and lengths give a session of more than 2^31 tokens");
    return tokens / block_tokens + 1;
  }

  LoadRequest next_request(std::uint32_t user) {
    User& state = users_[user];
    if (state.turns_done == 0) start_session(state);
    LoadRequest request;
    request.phase = phase();
    request.id = (std::uint64_t{state.turn++} << 32) | user;
    request.lane = user;
    request.play = play_;
    const std::uint32_t fresh = draw_length(options_.lengths.input_tokens, options_.lengths.range_ratio, random_);
    request.input_tokens = state.history_tokens + fresh;
    request.output_tokens = limited(draw_length(options_.lengths.output_tokens, options_.lengths.range_ratio, random_),
                                    options_.lengths.output_limit);
    if (shares_blocks_) add_runs(state, request);
    state.history_tokens = request.input_tokens;
    state.answer_tokens = request.output_tokens;
    ++given_;
    return request;
  }

  void start_session(User& state) {
    state.history_tokens = 0;
    if (!shares_blocks_) return;
    // Ids never repeat within a play; when they run out, a new play begins with an empty cache.
    if (next_block_ + private_blocks_ >= block_ids) {
      ++play_;
      sessions_of_play_ = 0;
      next_block_ = common_blocks();
    }
    const std::uint64_t session = sessions_of_play_++;
    const auto group = static_cast<std::uint32_t>(session % options_.prefix_groups);
    state.blocks_seen = session >= options_.prefix_groups ? prefix_blocks_ : 0;
    state.runs = {HashRun{group * prefix_blocks_, 0}, HashRun{static_cast<std::uint32_t>(next_block_), 0}};
    next_block_ += private_blocks_;
  }

  void add_runs(User& state, LoadRequest& request) const {
    const std::uint32_t blocks = request.input_tokens / block_tokens;
    const std::uint32_t common = std::min(prefix_blocks_, blocks);
    state.runs[0].count = common;
    state.runs[1].count = blocks - common;
    const std::size_t first = common == 0 ? 1 : 0, last = blocks > common ? 2 : 1;
    request.runs = std::span<const HashRun>(state.runs.data() + first, last - first);
    // An earlier answer enters the cache only as input of this turn.
    request.ideal_cached_blocks = std::min(state.blocks_seen, blocks);
    state.blocks_seen = blocks;
  }

  std::uint64_t common_blocks() const { return std::uint64_t{prefix_blocks_} * options_.prefix_groups; }

  ClosedLoopOptions options_;
  NumpyRandom random_;
  std::vector<User> users_;
  std::uint64_t private_blocks_;
  bool shares_blocks_ = false;
  std::uint32_t prefix_blocks_ = 0;
  std::uint32_t play_ = 0;
  std::uint64_t next_block_ = 0;
  std::uint64_t sessions_of_play_ = 0;
  std::uint64_t given_ = 0;
  bool stopped_ = false;
  double ready_since_s_ = 0;
  std::vector<std::uint32_t> ready_;
};

}  // namespace

std::unique_ptr<Load> make_closed_loop(const ClosedLoopOptions& options) { return std::make_unique<ClosedLoop>(options); }

}  // namespace rackcast
