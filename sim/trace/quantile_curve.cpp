#include "sim/trace/quantile_curve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "sim/base/error.hpp"

namespace rackcast {
namespace {

constexpr double tail_place = 3.5;  // where the smallest and the largest value stand, in standard deviations

double place_of(double share) {
  if (share <= 0) return -tail_place;
  if (share >= 1) return tail_place;
  return std::clamp(normal_quantile(share), -tail_place, tail_place);
}

}  // namespace

QuantileCurve::QuantileCurve(std::vector<Knot> knots) : knots_(std::move(knots)) {
  for (std::size_t i = 0; i < knots_.size(); ++i) {
    RACKCAST_CHECK(knots_[i].value > 0, "a quantile curve has positive values");
    RACKCAST_CHECK(i == 0 || (knots_[i].share > knots_[i - 1].share && knots_[i].value >= knots_[i - 1].value), "a quantile curve rises");
    places_.push_back(place_of(knots_[i].share));
  }
}

QuantileCurve QuantileCurve::of(std::vector<double> samples, double floor) {
  constexpr std::array shares = {0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 1.0};
  std::vector<Knot> knots;
  if (samples.empty()) return QuantileCurve({{0, floor}, {1, floor}});
  std::sort(samples.begin(), samples.end());
  for (const double share : shares) {
    const double place = share * static_cast<double>(samples.size() - 1);
    const auto low = static_cast<std::size_t>(place);
    const std::size_t high = std::min(low + 1, samples.size() - 1);
    const double value = samples[low] + (samples[high] - samples[low]) * (place - static_cast<double>(low));
    knots.push_back({share, std::max(floor, value)});
  }
  return QuantileCurve(std::move(knots));
}

double QuantileCurve::at(double share) const {
  RACKCAST_CHECK(!knots_.empty(), "a quantile curve has knots");
  const double place = place_of(share);
  const auto above = std::upper_bound(places_.begin(), places_.end(), place);
  if (above == places_.begin()) return knots_.front().value;
  if (above == places_.end()) return knots_.back().value;
  const auto i = static_cast<std::size_t>(above - places_.begin());
  const double part = (place - places_[i - 1]) / (places_[i] - places_[i - 1]);
  return knots_[i - 1].value * std::pow(knots_[i].value / knots_[i - 1].value, part);
}

std::vector<double> stratified_ranks(std::size_t n, NumpyRandom& random, double width) {
  std::vector<double> ranks(n);
  for (std::size_t i = 0; i < n; ++i)
    ranks[i] = (static_cast<double>(i) + 0.5 + width * (random.uniform() - 0.5)) / static_cast<double>(n);
  for (std::size_t i = n; i > 1; --i) std::swap(ranks[i - 1], ranks[random.below(i)]);
  return ranks;
}

std::vector<double> correlated_ranks(const std::vector<double>& like, double correlation, NumpyRandom& random) {
  // A Gaussian copula; 2 sin(pi r / 6) turns a rank correlation into the normal one.
  const double normal = 2 * std::sin(std::numbers::pi * correlation / 6);
  // The independent part is stratified again among neighbours, so that no few large items share one end by chance.
  constexpr std::size_t neighbours = 8;
  std::vector<std::size_t> order(like.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&like](std::size_t a, std::size_t b) { return like[a] > like[b]; });
  std::vector<double> score(like.size());
  for (std::size_t begin = 0; begin < order.size(); begin += neighbours) {
    const std::size_t count = std::min(neighbours, order.size() - begin);
    const std::vector<double> own = stratified_ranks(count, random);
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t i = order[begin + k];
      score[i] = normal * place_of(like[i]) + std::sqrt(std::max(0.0, 1 - normal * normal)) * place_of(own[k]);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&score](std::size_t a, std::size_t b) { return score[a] < score[b]; });
  std::vector<double> ranks(like.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    ranks[order[i]] = (static_cast<double>(i) + random.uniform()) / static_cast<double>(order.size());
  return ranks;
}

}  // namespace rackcast
