// Host half of the router: scores sqrt(softplus(logit)); the top_k of score + bias are chosen (a tie goes to the lower
// expert); weights are the chosen scores over their sum, times 1.5.
#pragma once
#include <cstdint>
#include <vector>

namespace rackcast::kernels {

struct Routing {
  std::vector<std::int32_t> ids;  // best first
  std::vector<double> weights;
};
Routing reference_route(const std::vector<double>& logits, const std::vector<double>& bias, int top_k);
double route_score(double logit);

}  // namespace rackcast::kernels
