// The clock under long work. Kernels are timed in short bursts from a rested clock; compute-bound work that goes on reaches
// the GPU's power cap after some 60 ms and runs at a share of that rate (cost family clock: sustained_share; attention_share
// and index_share where a GPU's were measured). Prompts are such
// work, as far as their kernels keep the tensor cores busy: those that were seen to slow down reach 58 to 83% of the peak of
// their type in a burst, so kernels below sustained_from keep their rate. So do decode steps, which wait for memory and links.
#pragma once
#include <memory>

#include "sim/cost/costs.hpp"
#include "sim/cost/step_model.hpp"

namespace rackcast {

// mma_tflops of every family that keeps the tensor cores busy times the share, and no better founded than it.
CostSpec sustained_costs(const CostSpec& burst, const GpuSpec& gpu);

// Iterations with prompt tokens by `sustained`, all others by `burst`.
std::unique_ptr<StepModel> make_two_clock_model(std::unique_ptr<StepModel> burst, std::unique_ptr<StepModel> sustained);

}  // namespace rackcast
