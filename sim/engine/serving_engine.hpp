// One model instance: its DP ranks, their queues and KV memory, and its iterations. All ranks of an engine step
// together: an iteration lasts as long as the slowest one needs, and ranks without work run along empty.
// A prefill engine computes prompts, a decode engine answers, an aggregated one does both in mixed iterations.
// It owns no clock: the simulation starts an iteration, and tells it when that has ended. One iteration is one event.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/cost/memory.hpp"
#include "sim/cost/step_model.hpp"
#include "sim/engine/finish_ring.hpp"
#include "sim/engine/flow_step.hpp"
#include "sim/engine/layered_step.hpp"
#include "sim/engine/request.hpp"
#include "sim/policy/batcher.hpp"
#include "sim/policy/router.hpp"
#include "sim/policy/speculation.hpp"
#include "sim/policy/state_boundaries.hpp"

namespace rackcast {

class EngineExperts;

struct EngineShape {
  EngineRole role = EngineRole::aggregated;
  std::uint32_t ranks = 1;            // DP ranks; 1 for tensor parallelism
  std::uint32_t gpus = 1;
  std::optional<std::uint32_t> expert_ranks;  // that whole experts are spread over, 1: slices; not given: the DP ranks if there are several
  BatchLimits limits{};
  std::int64_t kv_tokens = KvCache::unlimited;  // of one DP rank
  std::int64_t kv_fixed_tokens = 0;   // fixed space of a running request (window, compressor state), in tokens
  std::int64_t kv_left_tokens = 0;    // the same of a finished one, until it is evicted
  std::int64_t retention_interval = 0;  // tokens between states from which a prompt can go on; 0: anywhere
  KvFullPolicy when_full = KvFullPolicy::wait;
  bool prefix_cache = true;
  bool drafts = false;                // runs the draft model in decode steps
  bool adaptive_verify = false;       // a step verifies as many drafts as pay
  bool posts_behind_launch = false;   // descriptors that its hosts post do not delay the launch of the step
  std::uint32_t layers = 0;           // fidelity layered: events of an iteration; 0: collapsed, one
  bool flows = false;                 // fidelity flow: ranks exchange over the network
};

// What an engine's work so far adds up to.
struct EngineTotals {
  std::uint64_t iterations = 0;
  double busy_s = 0;
  StepTime parts{};                   // sums over iterations
  double prefill_tokens = 0, prefill_requests = 0;       // computed, and prompts completed
  double prefill_chunks = 0, prefill_context = 0, prefill_query_context = 0;  // as in RankBatch
  double prefill_tail_tokens = 0, prefill_tail_query_context = 0;
  double decode_iterations = 0, decode_requests = 0, decode_context = 0;  // summed over decode steps (and ranks)
  double prefill_busy_s = 0;          // busy time of iterations that held prompt tokens
  double verified_tokens = 0;         // query tokens of decode steps
  double kept_tokens = 0;             // answer tokens
  double asked_tokens = 0, hit_gpu_tokens = 0, hit_host_tokens = 0;  // of admitted prompts, in full blocks
  std::uint64_t preemptions = 0;
  double basis_sampled_s = 0;
  double eplb_slowdown_s = 0;         // step time that weights on their way took from the exchange of tokens
  double layered_collapsed_s = 0, layered_expected_s = 0;  // of sampled iterations: collapsed, and what layers should add up to
  BasisShare basis{};                 // of the sampled time
  EngineTotals minus(const EngineTotals& before) const;
};

// What an engine tells the simulation.
class EngineEvents {
 public:
  virtual ~EngineEvents() = default;
  virtual void prompt_done(RequestId id) = 0;                     // its last prompt token is computed
  virtual void answer_started(RequestId id) = 0;                  // its first step here is done
  virtual void answer_done(RequestId id) = 0;
  virtual bool host_match(RequestId id) = 0;                      // may set host_held; true: a load is needed first
  virtual void start_host_load(RequestId id) = 0;
  virtual void preempted(RequestId id) = 0;                       // a decode engine put it back
};

class ServingEngine {
 public:
  ServingEngine(std::uint32_t index, const EngineShape& shape, const StepModel& model, const Acceptance& acceptance,
                std::uint64_t seed, RequestArena& arena, EngineEvents& events);
  void use_loads(std::span<TargetLoad> targets, std::span<DecodeRankLoad> decode_loads);

  // --- prompts
  bool can_ever_hold(const Request& request) const;
  void enqueue(RequestId id, std::uint32_t rank, std::uint32_t expected_hit_tokens, bool first);
  void host_load_done(RequestId id);
  void leave(RequestId id);                                       // gives its prompt's KV and place back
  void preload(std::uint32_t rank, const LoadRequest& ask);       // its prompt becomes resident without being computed
  const StateBoundaries& states() const { return states_; }
  // --- answers
  void reserve_decode(RequestId id, std::uint32_t rank);          // checked by the caller against decode_loads
  void join(RequestId id);                                        // from the next iteration on
  void release_decode(RequestId id);                              // before it joined
  // --- failures: an engine that is halted begins nothing; its running iteration never ends
  void halt(double now_s);
  bool halted() const { return halted_; }
  void keep_answer(RequestId id);                                 // what the user has of it becomes part of its prompt
  std::vector<std::uint32_t> reset();                             // forgets all requests and KV; gives back moves not yet posted
  void come_back();
  void slow_down(std::uint32_t gpu, double factor);               // 1: as before
  void use_model(const StepModel& model) { model_ = &model; }
  const StepModel& own_model() const { return own_model_; }
  std::uint32_t generation() const { return generation_; }        // of iterations: those of earlier ones never end
  // Descriptors of a move that the rank's host posts in the next iteration, whether or not there is anything to compute.
  void post(std::uint32_t rank, std::uint32_t move, double seconds) { posting_.push_back({rank, move, seconds}); }
  // --- iterations
  struct Chunk {
    RequestId id;
    std::uint32_t tokens;
  };
  struct Posted {
    std::uint32_t move;
    double after_s;                                               // since the iteration began
  };
  bool idle() const { return !running_; }
  bool begin(double now_s, double& duration_s);                   // false: nothing to do; flows: no duration yet
  bool next_layer(double& duration_s);                            // fidelity layered: false after the last
  void end(double now_s);
  std::span<const Chunk> chunks() const { return chunks_; }       // of the iteration that runs
  std::span<const Posted> posted() const { return posted_; }
  double iteration_s() const { return iteration_s_; }             // flows: as collapsed, which is known beforehand
  bool flowing() const { return flowing_; }
  FlowStep& flow_step() { return flow_; }

  std::uint32_t index() const { return index_; }
  const EngineShape& shape() const { return shape_; }
  const EngineTotals& totals() const { return totals_; }
  const RangeTally& outside() const { return outside_; }  // of the sampled time (totals().basis_sampled_s)
  // Iterations count when they begin, but of the one under way only what has passed is busy time.
  double busy_s(double now_s) const;
  EngineTotals totals_at(double now_s) const;
  std::span<const RankBatch> batch() const { return batch_; }
  const StepModel& model() const { return own_model_; }
  const KvCache& kv(std::uint32_t rank) const { return ranks_[rank].kv; }
  std::uint32_t waiting(std::uint32_t rank) const { return ranks_[rank].waiting.count; }
  std::uint32_t decoding(std::uint32_t rank) const { return ranks_[rank].decoding; }
  std::uint32_t running(std::uint32_t rank) const { return ranks_[rank].requests + (shape_.role == EngineRole::decode ? ranks_[rank].decoding : 0); }
  std::int64_t grown_reserved(std::uint32_t rank) const { return ranks_[rank].grown_reserved; }
  std::int64_t decode_need(const Request& request) const;
  void check() const;                                             // recomputes every incremental sum
  ExpertLoad expert_load{};                                       // without expert state
  void use_experts(std::shared_ptr<EngineExperts> experts);
  EngineExperts* experts() const { return experts_.get(); }       // null: balanced routing

 private:
  struct Rank {
    explicit Rank(std::int64_t kv_tokens) : kv(kv_tokens) {}
    KvCache kv;
    RequestQueue waiting, prefilling;
    std::uint32_t requests = 0;       // admitted: loading, prefilling, handing over, decoding
    std::uint32_t decoding = 0;
    double context = 0;               // tokens in KV of the decoding requests
    double growth_per_step = 0;       // tokens that a step adds to it
    double grown = 0;                 // answer tokens of the decoding requests
    std::int64_t grown_reserved = 0;  // their KV space (when_full: preempt)
    RequestId oldest = no_request, youngest = no_request;  // decoding, by joining
  };
  struct Posting {
    std::uint32_t rank, move;
    double seconds;
  };

  bool has_prefill() const { return shape_.role != EngineRole::decode; }
  bool has_decode() const { return shape_.role != EngineRole::prefill; }
  void post_descriptors();
  void fill_decode(double query_tokens);
  void choose_verify_length();
  void compose_prefill(std::uint32_t r, bool answers_only);
  bool admit(RequestId id, Rank& rank, std::uint32_t r);
  std::uint32_t schedule_chunk(RequestId id, Rank& rank, std::uint32_t r, std::uint32_t budget);
  void start_decoding(RequestId id);
  void finish_decoding(RequestId id);
  void drop_from_running(RequestId id, Rank& rank, double generated);
  void make_room_for_growth(std::uint32_t r);
  bool put_back_youngest(std::uint32_t r);
  void release_prompt_kv(Request& request, Rank& rank);
  ExpertLoad draw_load(double now_s);
  void account(const StepTime& time);
  double generated(const Request& request) const {
    return static_cast<double>(step_ - request.join_step) * request.tokens_per_step;
  }

  std::uint32_t index_;
  EngineShape shape_;
  std::uint32_t since_prompts_ = 0xffffffffU;  // iterations; starts beyond any limit
  const StepModel& own_model_;
  const StepModel* model_ = &own_model_;
  const Acceptance& acceptance_;
  std::uint64_t seed_;
  RequestArena& arena_;
  EngineEvents& events_;
  std::span<TargetLoad> targets_;
  std::span<DecodeRankLoad> decode_loads_;
  std::vector<Rank> ranks_;
  StateBoundaries states_;            // of all ranks: a block id is one prompt's wherever it is computed
  std::vector<RankBatch> batch_;
  std::vector<Chunk> chunks_;
  std::vector<RequestId> joining_, started_;
  std::vector<Posting> posting_;
  std::vector<Posted> posted_;
  double iteration_s_ = 0;            // of the iteration that runs
  FinishRing finishing_;
  LayeredStep layered_;
  FlowStep flow_;
  bool flowing_ = false;              // the running iteration exchanges over the network
  StepTime collapsed_;                // of it
  std::shared_ptr<EngineExperts> experts_;
  std::vector<double> decode_topics_, topics_;  // uneven experts: decoding requests by topic; those of the step
  std::size_t topic_of(const Request& request) const;
  std::uint64_t step_ = 0;            // of requests: a step that verifies less advances it by less than one
  double progress_ = 0, advance_ = 1;
  double now_s_ = 0;                  // when the iteration under way began
  int verify_ = 0, chosen_verify_ = 0;  // drafts that a step verifies
  std::uint32_t chosen_for_ = 0, chosen_ago_ = 0;
  std::uint32_t decoding_ = 0;        // over all ranks
  bool running_ = false, halted_ = false;
  std::uint32_t generation_ = 0;
  std::vector<double> slow_by_gpu_;   // empty: none is slow
  double slowest_gpu_ = 1;
  void slow(StepTime& time) const;
  EngineTotals totals_;
  RangeTally outside_;
};

}  // namespace rackcast
