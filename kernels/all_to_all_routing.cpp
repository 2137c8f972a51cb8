#include "kernels/all_to_all_routing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "kernels/draws.hpp"
#include "sim/base/error.hpp"

namespace rackcast::a2a {

const char* shape_problem(const Shape& shape) {
  if (shape.ranks < 1 || shape.ranks > 1024) return "ranks must be 1 to 1024";
  if (shape.tokens_max < 1) return "tokens_max must be at least 1";
  if (shape.hidden < piece_values || shape.hidden % piece_values != 0) return "hidden must be a multiple of 512";
  if (shape.hidden > hidden_max) return "hidden must be at most 8192";
  if (shape.top_k < 1 || shape.top_k > top_k_max) return "top_k must be 1 to 8";
  if (shape.experts_per_rank < 1) return "experts_per_rank must be at least 1";
  if (int64_t{shape.experts_per_rank} * shape.ranks > experts_max) return "too many experts";
  if (int64_t{shape.experts_per_rank} * shape.ranks < shape.top_k) return "fewer experts than top_k";
  return nullptr;
}

namespace {

std::vector<double> popularity(int experts, const std::string& routing, uint64_t seed) {
  std::vector<double> weight(static_cast<std::size_t>(experts), 1.0);
  if (routing == "balanced") return weight;
  RACKCAST_CHECK(routing.rfind("zipf", 0) == 0, "unknown routing " + routing);
  const double exponent = std::stod(routing.substr(4));
  std::vector<std::size_t> place(weight.size());
  std::iota(place.begin(), place.end(), std::size_t{0});
  Draws draws(seed);
  for (std::size_t i = place.size(); i > 1; --i) std::swap(place[i - 1], place[draws.below(i)]);
  for (std::size_t i = 0; i < place.size(); ++i) weight[place[i]] = std::pow(static_cast<double>(i + 1), -exponent);
  return weight;
}

}  // namespace

RankTokens draw_tokens(const Shape& shape, const std::string& routing, int tokens, uint64_t seed) {
  const int experts = shape.ranks * shape.experts_per_rank;
  RankTokens out;
  out.tokens = tokens;
  out.expert.reserve(static_cast<std::size_t>(tokens) * static_cast<std::size_t>(shape.top_k));
  Draws draws(seed);
  const bool all_to_one = routing == "all_to_one";
  std::vector<double> sum;
  if (!all_to_one) {
    // The popularity belongs to the layer, not to a rank: every rank must draw from the same one.
    sum = popularity(experts, routing, 12345);
    std::partial_sum(sum.begin(), sum.end(), sum.begin());
  }
  std::vector<int32_t> chosen;
  for (int t = 0; t < tokens; ++t) {
    chosen.clear();
    while (static_cast<int>(chosen.size()) < shape.top_k) {
      int32_t e = 0;
      if (all_to_one && static_cast<int>(chosen.size()) >= shape.experts_per_rank) {
        e = static_cast<int32_t>(chosen.size());
      } else if (all_to_one) {
        e = static_cast<int32_t>(draws.below(static_cast<uint64_t>(shape.experts_per_rank)));
      } else {
        const auto at = std::upper_bound(sum.begin(), sum.end(), draws.uniform() * sum.back());
        e = static_cast<int32_t>(std::min<std::ptrdiff_t>(at - sum.begin(), experts - 1));
      }
      if (std::find(chosen.begin(), chosen.end(), e) == chosen.end()) chosen.push_back(e);
    }
    float total = 0;
    const std::size_t first = out.weight.size();
    for (int32_t e : chosen) {
      out.expert.push_back(e);
      out.weight.push_back(static_cast<float>(0.25 + draws.uniform()));
      total += out.weight.back();
    }
    for (std::size_t i = first; i < out.weight.size(); ++i) out.weight[i] /= total;
  }
  return out;
}

double expected_copies(int ranks, int experts, int top_k) {
  // A rank is missed when all top_k experts are drawn, without replacement, from the other ranks' experts.
  const int elsewhere = experts - experts / ranks;
  double missed = 1;
  for (int i = 0; i < top_k; ++i) missed *= static_cast<double>(elsewhere - i) / static_cast<double>(experts - i);
  return ranks * (1 - missed);
}

int64_t Volume::egress_max() const { return egress.empty() ? 0 : *std::max_element(egress.begin(), egress.end()); }
int64_t Volume::ingress_max() const { return ingress.empty() ? 0 : *std::max_element(ingress.begin(), ingress.end()); }

Volume volume(const Shape& shape, const std::vector<RankTokens>& ranks) {
  Volume v;
  v.egress.assign(ranks.size(), 0);
  v.ingress.assign(static_cast<std::size_t>(shape.ranks), 0);
  for (std::size_t source = 0; source < ranks.size(); ++source) {
    v.tokens += ranks[source].tokens;
    for (int t = 0; t < ranks[source].tokens; ++t) {
      std::set<int32_t> destinations;
      for (int j = 0; j < shape.top_k; ++j)
        destinations.insert(ranks[source].expert[static_cast<std::size_t>(int64_t{t} * shape.top_k + j)] / shape.experts_per_rank);
      v.copies += static_cast<int64_t>(destinations.size());
      for (int32_t d : destinations) {
        if (d == static_cast<int32_t>(source)) continue;
        ++v.egress[source];
        ++v.ingress[static_cast<std::size_t>(d)];
      }
    }
  }
  return v;
}

}  // namespace rackcast::a2a
