// The router's tail as its launchers see it (mathematics in route.hpp). Only for CUDA builds.
#pragma once
#include <cstdint>

#include "kernels/launcher.hpp"

namespace rackcast::kernels {

// logits fp32 [tokens][experts], bias [experts]; ids and weights [tokens][top_k]. At most 512 experts and 8 choices.
void launch_route_tail(int tokens, int experts, int top_k, const float* logits, const float* bias, std::int32_t* ids, float* weights, Stream stream);

}  // namespace rackcast::kernels
