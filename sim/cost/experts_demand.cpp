// A step's experts under a demand: the slowest rank of each sampled layer, and what the layers add up to.
#include <algorithm>
#include <cmath>

#include "sim/cost/experts.hpp"

namespace rackcast {

ExpertSide::Work ExpertSide::uneven_work(double largest, double total, const ExpertDemand& rank, double most_ingress,
                                         double link_taken) const {
  Work w{.largest = largest, .mean = total / ranks_, .total = total, .ingress = rank.ingress, .most_ingress = most_ingress,
         .link_taken = link_taken};
  w.rows = total / spread_ * shape_.top_k * rank.rows;
  const double touched = rank.touched * touched_slots(double(shape_.experts) / spread_, shape_.experts, shape_.top_k, total);
  w.weights = std::min(slots_, touched) * expert_weights_;
  return w;
}

template <class Seconds>
ExpertSide::Slowest ExpertSide::slowest(double largest, double total, std::span<const ExpertDemand> layer, double link_taken,
                                        const Seconds& seconds_of) const {
  double most_ingress = 0;
  for (const ExpertDemand& rank : layer) most_ingress = std::max(most_ingress, rank.ingress);
  Slowest found;
  for (const ExpertDemand& rank : layer) {
    const Work work = uneven_work(largest, total, rank, most_ingress, link_taken);
    if (const double seconds = seconds_of(work); seconds > found.seconds) found = {work, seconds};
  }
  return found;
}

ExpertSide::Slowest ExpertSide::slowest(double largest, double total, std::span<const ExpertDemand> layer, double link_taken) const {
  return slowest(largest, total, layer, link_taken, [this](const Work& w) { return work_seconds(w); });
}

int ExpertSide::evaluate(double largest, double total, const StepDemand* demand, double link_taken,
                         std::array<ExpertCost, max_rows>& out) const {
  if (total <= 0 || shape_.layers <= 0) return 0;
  const std::size_t layers = demand && uneven() ? demand->layers() : 1;
  int n = 0;
  for (std::size_t i = 0; i < layers; ++i) {
    std::array<ExpertCost, max_rows> one;
    n = parts(demand && uneven() ? slowest(largest, total, demand->layer(i), link_taken).work : balanced_work(largest, total, link_taken), one);
    for (std::size_t k = 0; k < static_cast<std::size_t>(n); ++k) {
      const double flops = i == 0 ? 0 : out[k].flops, bytes = i == 0 ? 0 : out[k].bytes, seconds = i == 0 ? 0 : out[k].seconds;
      const double link_bytes = i == 0 ? 0 : out[k].link_bytes;
      out[k] = {one[k].name, flops + one[k].flops, bytes + one[k].bytes, seconds + one[k].seconds, one[k].basis, one[k].exact, one[k].family, link_bytes + one[k].link_bytes};
    }
  }
  for (std::size_t k = 0; k < static_cast<std::size_t>(n); ++k)
    for (double* sum : {&out[k].flops, &out[k].bytes, &out[k].seconds, &out[k].link_bytes}) *sum *= shape_.layers / static_cast<double>(layers);
  return n;
}

double ExpertSide::balanced_seconds(double largest, double total, double link_taken) const {
  std::array<ExpertCost, max_rows> costs;
  double sum = 0;
  const int n = parts(balanced_work(largest, total, link_taken), costs);
  for (int i = 0; i < n; ++i) sum += shape_.layers * costs[static_cast<std::size_t>(i)].seconds;
  return sum;
}

double ExpertSide::uneven_seconds(double largest, double total, const StepDemand& demand, double link_taken) const {
  double sum = 0;
  for (std::size_t i = 0; i < demand.layers(); ++i) sum += slowest(largest, total, demand.layer(i), link_taken).seconds;
  return sum * shape_.layers / static_cast<double>(demand.layers());
}

// Where the demand was drawn, with `largest` at the nearest eighth of an octave: the order of steps changes nothing.
// Norms from chords on both sides, which are within 1e-4 of themselves: a step's draws scatter by more.
double ExpertSide::ratio(const StepDemand& demand, double largest_over_mean, double link_taken) const {
  constexpr double cells_per_octave = 8;
  const int cell = static_cast<int>(std::lround(cells_per_octave * std::log2(std::max(1.0, largest_over_mean))));
  for (const StepDemand::Known& known : demand.known)
    if (known.unevenness == cell && known.asker == this && known.link_taken == link_taken) return known.ratio;
  const double largest = demand.bucket_tokens / ranks_ * std::exp2(cell / cells_per_octave);
  const auto seconds_of = [this](const Work& w) { return work_seconds_above(w); };
  double uneven = 0;
  for (std::size_t i = 0; i < demand.layers(); ++i) uneven += slowest(largest, demand.bucket_tokens, demand.layer(i), link_taken, seconds_of).seconds;
  const double balanced = seconds_of(balanced_work(largest, demand.bucket_tokens, link_taken));
  const double found = uneven / (static_cast<double>(demand.layers()) * balanced);
  demand.known.push_back({this, cell, link_taken, found});
  return found;
}

double ExpertSide::seconds(double largest, double total, const StepDemand* demand, double link_taken) const {
  if (total <= 0 || shape_.layers <= 0) return 0;
  if (!demand || !uneven()) return balanced_seconds(largest, total, link_taken);
  if (demand->bucket_tokens <= 0) return uneven_seconds(largest, total, *demand, link_taken);
  return balanced_seconds(largest, total, link_taken) * ratio(*demand, largest * ranks_ / total, link_taken);
}

std::vector<double> ExpertSide::layer_seconds(double largest, double total, const StepDemand& demand, double link_taken) const {
  std::vector<double> each;
  if (total <= 0 || shape_.layers <= 0 || !uneven()) return each;
  for (std::size_t i = 0; i < demand.layers(); ++i)
    each.push_back(shape_.layers * slowest(largest, total, demand.layer(i), link_taken).seconds);
  return each;
}

}  // namespace rackcast
