#include "sim/engine/failures.hpp"

#include <algorithm>
#include <cmath>

namespace rackcast {

double Goodput::mean(double from_s, double to_s) const {
  const auto first = static_cast<std::size_t>(std::max(0.0, from_s) / bucket_s), last = static_cast<std::size_t>(std::max(0.0, to_s) / bucket_s);
  if (last <= first) return 0;
  double sum = 0;
  for (std::size_t i = first; i < std::min(last, tokens_.size()); ++i) sum += tokens_[i];
  return sum / (static_cast<double>(last - first) * bucket_s);
}

Goodput::Loss Goodput::loss(double failure_s, double end_s) const {
  constexpr double history_s = 300, width_s = 30, enough = 0.95;
  Loss loss;
  loss.before_tok_s = loss.lowest_tok_s = mean(failure_s - history_s, failure_s);
  if (loss.before_tok_s <= 0) return loss;
  bool fell = false;
  double until_s = end_s;
  for (int bucket = 0;; ++bucket) {
    const double t = failure_s + width_s + bucket * bucket_s;
    if (t > end_s) break;
    const double now = mean(t - width_s, t);
    loss.lowest_tok_s = std::min(loss.lowest_tok_s, now);
    fell = fell || now < enough * loss.before_tok_s;
    if (!fell && t < failure_s + 4 * width_s) continue;   // the loss may show late: requests under way still end
    if (now >= enough * loss.before_tok_s) {
      loss.recovered_s = fell ? t - failure_s : 0;
      until_s = fell ? t : failure_s;
      break;
    }
  }
  loss.lost_tokens = std::max(0.0, (loss.before_tok_s - mean(failure_s, until_s)) * (until_s - failure_s));
  return loss;
}

}  // namespace rackcast
