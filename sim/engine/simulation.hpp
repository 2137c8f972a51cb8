// The discrete-event core: one clock, engines, a router, KV movements, and a load that is replayed on them. Plain values
// in, records out; it knows neither YAML nor JSON. Phases of one instant: completions (iterations, flows), arrivals,
// then the start of hand-overs and iterations.
//
// Time to first token: from the request's arrival to its first token at the user. An aggregated engine gives it with the
// iteration that computes the last prompt token. With separate pools the prefill engine computes it, and the user gets it
// when the KV has reached the decode engine. A request of one token ends at its prefill engine.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "sim/engine/engine_experts.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/failures.hpp"
#include "sim/engine/kv_transfer.hpp"
#include "sim/engine/network.hpp"
#include "sim/engine/observer.hpp"
#include "sim/engine/serving_engine.hpp"
#include "sim/engine/topology.hpp"
#include "sim/policy/admission.hpp"
#include "sim/trace/load.hpp"

namespace rackcast {

// Tags of flows: a move's is its bare slot; a message between ranks (fidelity flow) names the rank that gets it.
constexpr std::uint64_t dispatch_tag = std::uint64_t{1} << 33;
constexpr std::uint64_t combine_tag = std::uint64_t{1} << 34;

struct PoolOptions {
  EngineShape shape;
  std::uint32_t engines = 1;
  const StepModel* model = nullptr;   // borrowed
  ExpertLoad expert_load{};           // of every step, where there is no expert state; borrowed sources
};

struct SimulationOptions {
  std::vector<PoolOptions> pools;     // aggregated; prefill; or prefill and decode
  TopologyOptions topology{};
  RouterPolicy router = RouterPolicy::prefix_affinity;
  RouterOptions router_options{};
  AdmissionSpec admission{};
  Acceptance acceptance;
  KvTransferOptions transfer{};
  ExpertOptions experts{};            // no parts: balanced routing
  std::int64_t host_tier_tokens_per_node = 0;  // 0: no host tier
  FailureOptions failures{};
  double duration_s = 1800;           // of the measured window; infinite: until the load ends
  double grace_s = 30;
  bool preload = false;               // put the warmed cache in place instead of replaying the warm-up
  std::uint64_t seed = 42;
  double sample_interval_s = 0;       // 0: no time line
};

struct SimulationOutcome {
  double window_start_s = 0, window_end_s = 0, end_s = 0;
  std::uint64_t arrivals = 0, arrivals_measured = 0, finished_measured = 0, unfinished_measured = 0;
  std::uint64_t refused = 0;          // longer than a rank's whole KV memory
  std::uint64_t lost = 0, lost_measured = 0;        // with an engine, and not tried again
  std::uint64_t retried_measured = 0;               // of those that finished: that began again after they lost an engine
  std::vector<FailureRecord> failures;
  Goodput goodput;                                  // filled when there are failures
  std::uint64_t turned_away = 0, waited_at_door = 0;  // by admission limits
  std::uint64_t preemptions = 0;
  double in_flight_area = 0;          // integral of measured requests in the system over the window, request seconds
  std::uint64_t events = 0, iterations = 0, flows = 0;
  std::uint64_t exchange_flows = 0;   // fidelity flow: messages between ranks
  std::vector<EngineTotals> engine_window;    // work inside the window, by engine
  std::vector<EngineTotals> engine_total;
  std::vector<RangeTally> engine_outside;     // by engine, of the sampled time of the whole run
  std::vector<std::uint32_t> engine_rack, engine_first_gpu;
  KvTransferTotals transfer;          // inside the window
  RangeTally transfer_outside;        // of the whole run, in moves instead of seconds
  std::uint64_t transfer_moves = 0;
  std::vector<double> link_bytes;     // inside the window, by flows that ended, in the order of `links`
  std::vector<TopologyLink> links;
  std::vector<std::shared_ptr<EngineExperts>> experts;  // by engine; null: balanced routing
  std::vector<double> eplb_stall_s;   // by engine, of the whole run
  std::int64_t host_tier_used_tokens = 0, host_tier_capacity_tokens = 0;
  std::int64_t evicted_tokens = 0;
};

// Flows of expert weights carry the engine and this bit; a request's flows use the bits below.
inline constexpr std::uint64_t expert_flow_tag = std::uint64_t{1} << 40;

class Simulation final : private EngineEvents, private PrefixView {
 public:
  Simulation(const SimulationOptions& options, Load& load, Network& network, RunObserver& observer);
  SimulationOutcome run();  // once
  void check() const;       // conservation: requests, tokens, KV space

 private:
  struct Target {
    std::uint32_t engine, rank;
  };

  // simulation.cpp: the clock
  void group_targets();
  void advance();
  void handle(const Event& event);
  void iteration_event(const Event& event);
  void arrivals();
  void schedule();
  void preload();
  void open_window();
  void close_window();
  void wake(std::uint32_t engine);
  void count_in_flight(int change);

  bool in_window() const { return window_open_ && !window_closed_; }

  // hand_over.cpp: from prefill to decode
  struct Link {
    std::uint32_t from, to;  // GPUs
    bool nvlink;
    double latency_s;
  };
  void start_hand_overs();
  bool assign_decode(RequestId id);
  Link link_of(RequestId id) const;
  void send_layers(ServingEngine& engine, double duration_s);
  void send_part(RequestId id, double ready_s, double tokens, double share, double fixed_share);
  void transfer_ready(std::uint32_t slot);
  void transfer_posted(std::uint32_t slot);
  void start_flow(std::uint32_t slot, std::span<const LinkId> path);
  void flow_done(std::uint32_t slot);
  void transfer_done(std::uint32_t slot);
  void hand_over_done(RequestId id);
  bool stale(const Move& move) const {
    const Request& request = arena_[move.request];
    return !request.alive || (move.kind == MoveKind::host_load ? request.life : request.hand) != move.life;
  }
  bool stale_free(std::uint32_t slot);                  // true: it was stale, and its slot is free
  void start_host_flow(std::uint32_t slot);
  void flow_stopped(std::uint32_t slot);

  // simulation_failures.cpp
  enum class Loss { nothing, destination, prompt, answer };
  void schedule_failures();
  void plan_failure(std::uint32_t source, double at_s, std::uint32_t engine, std::uint32_t gpu);
  void plan_random_failure(std::uint32_t source, double after_s);
  void fail(std::uint32_t index);
  void failure_noticed(std::uint32_t index);
  void failure_over(std::uint32_t index);
  Loss loss_of(RequestId id, std::uint32_t dead) const;
  void drop_destination(RequestId id);
  void drop_request(RequestId id, Loss loss);
  void start_again(RequestId id);
  void lose(RequestId id);
  void engine_back(std::uint32_t engine);
  void give_up_answers();
  void send_stopped();
  void release_stranded();
  bool any_up(std::size_t begin, std::size_t end) const;
  bool any_left(std::size_t begin, std::size_t end) const;  // up, or coming back
  // simulation_exchange.cpp: fidelity flow
  void rank_ready(std::uint32_t global_rank);
  void message_landed(std::uint64_t tag);
  void exchange(std::uint32_t engine);
  // simulation_experts.cpp: expert placement
  void add_experts();
  bool holds_for_experts(std::uint32_t engine);
  void experts_ready(std::uint32_t id);
  void expert_flow_done(std::uint32_t id);
  void experts_lost(std::uint32_t engine);
  // Of an engine's weights on their way: those of a rearrangement that its engine did not survive are nobody's.
  std::uint32_t expert_id(std::uint32_t engine) const { return engine | expert_traffic_[engine].generation << 16; }
  void expert_stage_done(std::uint32_t engine);

  // simulation_door.cpp: admission
  void come_in(RequestId id);
  void open_door();
  void send_away(RequestId id);

  // simulation_watch.cpp: what observers are told
  RunLayout layout() const;
  std::vector<double> link_bytes() const;
  void sample();
  void tell_step(std::uint32_t engine);
  void tell_moved(const Move& move);
  void tell_unfinished();
  void tell_rearranged(std::uint32_t engine, double since_s, bool stalled);
  void tell_failure(const FailureRecord& failure, bool over);

  // simulation_flow.cpp: a request's way
  void arrive(const LoadRequest& ask);
  void route(RequestId id, bool first);
  void finish(RequestId id);
  void remove(RequestId id);
  void host_load_done(RequestId id);
  KvCache* host_tier_of(std::uint32_t engine, std::uint32_t rank);
  const KvCache* host_tier_of(std::uint32_t engine, std::uint32_t rank) const;
  void write_through(std::uint32_t engine, std::uint32_t rank, const LoadRequest& ask, std::uint32_t blocks);
  std::uint32_t gpu_of(std::uint32_t engine, std::uint32_t rank, RequestId id) const;
  void prompt_done(RequestId id) override;
  void answer_started(RequestId id) override;
  void answer_done(RequestId id) override;
  bool host_match(RequestId id) override;
  void start_host_load(RequestId id) override;
  void preempted(RequestId id) override;
  std::uint32_t matched_tokens(std::uint32_t target, const RouteQuery& query) const override;
  void expect(std::uint32_t target, const RouteQuery& query) const override;
  std::uint32_t tier_match(const KvCache* tier, const RouteQuery& query) const;

  SimulationOptions options_;
  Load& load_;
  Network& network_;
  RunObserver& observer_;
  Topology topology_;
  KvTransfer transfer_;
  Moves moves_;
  std::uint32_t lives_ = 0;                  // of requests; one that is lost and tried again begins another
  std::unique_ptr<Router> router_;
  RequestArena arena_;
  EventQueue queue_;
  std::vector<ServingEngine> engines_;       // prefill or aggregated ones first
  std::vector<Placement> places_;
  std::uint32_t prompt_engines_ = 0;         // how many compute prompts
  std::vector<Target> targets_;
  std::vector<TargetLoad> target_loads_;
  std::vector<DecodeRankLoad> decode_loads_; // of all decode ranks, by rack
  std::vector<Target> decode_targets_;
  std::vector<std::pair<std::size_t, std::size_t>> decode_of_rack_;  // [begin, end) in decode_loads_
  std::vector<KvCache> host_tiers_;          // by node
  std::vector<std::uint64_t> landed_, failed_;  // tags of flows that ended in this instant
  std::vector<std::uint32_t> stopped_;       // moves that wait for a link
  RequestQueue stranded_;                    // that no engine can take now
  double last_loss_s_ = -1;
  std::uint64_t lost_at_once_ = 0;
  std::vector<std::uint32_t> failure_source_;  // of outcome_.failures
  std::vector<char> down_, gone_;            // by engine: known to be away; and for good
  std::uint32_t spare_gpus_ = 0;
  mutable std::vector<std::pair<const KvCache*, std::uint32_t>> tier_matches_;  // of the query that is being routed
  std::vector<LoadRequest> due_;
  RequestQueue handing_over_;                // computed prompts that wait for room in a decode engine
  bool decode_room_changed_ = false;
  RequestQueue at_door_;
  std::uint64_t inside_ = 0;                 // admitted and not done; counted under admission limits only
  std::vector<std::uint32_t> awake_;
  std::vector<char> is_awake_;
  std::vector<Target> all_ranks_;            // of all engines, in their order
  std::vector<std::uint32_t> first_rank_;    // of an engine, in all_ranks_

  struct ExpertTraffic {
    std::uint32_t flows = 0;                 // of the stage, still under way
    std::uint32_t generation = 0;            // grows when the engine dies
    double since_s = 0;                      // of the rearrangement
  };
  std::vector<ExpertTraffic> expert_traffic_;  // by engine

  std::uint64_t finished_ = 0;
  double computed_tokens_ = 0, answered_tokens_ = 0;  // of finished requests
  double now_s_ = 0;
  double load_next_s_ = 0;
  bool detailed_ = false;             // the observer wants every step and movement
  std::vector<double> step_start_s_;  // by engine, when detailed
  std::vector<double> window_start_bytes_;
  RunSample sample_;
  bool window_open_ = false, window_closed_ = false;
  std::uint64_t in_flight_measured_ = 0;
  double in_flight_since_s_ = 0;
  std::vector<EngineTotals> window_start_totals_;
  double refused_at_s_ = -1;       // refusals of one instant, to notice a load that stands still
  std::uint64_t refused_now_ = 0;
  SimulationOutcome outcome_;
};

}  // namespace rackcast
