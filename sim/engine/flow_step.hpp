// Fidelity `flow`: the ranks of an engine go through the layers each at its own pace and meet in the expert exchange, whose
// messages are flows over the links of the rack. A rank does its attention side, sends its rows to all others
// (dispatch), computes what arrived once all of it is there, sends the results back (combine), and goes on when all its
// own are back. A fused kernel starts when the last rank is there; its work and its messages overlap.
// Times of attention sides vary from layer to layer and rank to rank as in layered_step.hpp.
//
// It owns neither clock nor network. The caller reports what ended and then does what `timers` and `sends` ask for.
#pragma once
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "sim/cost/step_model.hpp"

namespace rackcast {

class FlowStep {
 public:
  enum class Direction : std::uint8_t { dispatch, combine };
  struct Timer {
    std::uint32_t rank;
    double after_s;
  };
  struct Send {
    std::uint32_t from, to;
    Direction direction;
    double bytes;
  };

  explicit FlowStep(std::uint64_t seed) : random_(seed) {}

  // Starts an iteration whose collapsed form lasts collapsed_s.
  void begin(const StepModel& model, std::span<const RankBatch> batch, const ExpertLoad& load, double collapsed_s, double now_s);
  void timer_ended(std::uint32_t rank, double now_s);
  void landed(std::uint32_t to, Direction direction, double now_s);
  // True once, when all ranks are through; what is left takes rest_s().
  bool take_through();
  double rest_s() const { return phases_.rest_s; }
  double began_s() const { return began_s_; }
  const ExchangePhase& exchange(Direction direction) const;  // rates are those of all layers
  // E[step] / collapsed, of the sums of maxima alone, as in layered_step.hpp. After a fused kernel ranks do not wait for each
  // other: one that ends K_r - max K earlier has that much more time for its attention side, so that here
  //   E[step] = sum over layers of max_r K_r + E[max_r (a_r (1 + jitter z_r) + K_r - max K)] + the rest.
  double expected_ratio() const;

  std::vector<Timer> timers;
  std::vector<Send> sends;

 private:
  enum class At : std::uint8_t { attention, waiting, dispatching, experts, combining, finishing, through };
  struct Rank {
    At at = At::attention;
    std::uint32_t layer = 0;
    std::uint32_t arrived = 0, returned = 0;  // messages of the running dispatch and combine
  };

  const ExpertPhases& experts_of(std::uint32_t layer) const { return phases_.experts[kind_of_[layer]]; }
  double attention_s(std::uint32_t rank) const { return phases_.layers_s[rank] / static_cast<double>(kind_of_.size()); }
  double layer_excess_s(const ExpertPhases& e) const;  // E[max] - max of a layer of this kind
  void start_layer(std::uint32_t rank);
  void send_all(std::uint32_t from, Direction direction, double now_s);
  void go_on(std::uint32_t rank, double now_s);  // if what it waits for is there

  std::mt19937_64 random_;
  StepPhases phases_;
  std::vector<std::uint32_t> kind_of_;   // by layer, into phases_.experts
  std::vector<double> spread_;           // by layer and rank: what varies of the attention side, as a factor
  std::vector<Rank> ranks_;
  std::size_t ranks_waiting_ = 0, ranks_through_ = 0;
  double began_s_ = 0, fused_began_s_ = 0, collapsed_s_ = 0;
};

}  // namespace rackcast
