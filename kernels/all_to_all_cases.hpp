// The three ways of all_to_all as prepared cases. CUDA code only.
#pragma once
#include <memory>

#include "kernels/all_to_all_kernels.hpp"
#include "kernels/launcher.hpp"

namespace rackcast::a2a {

std::unique_ptr<kernels::Case> virtual_case(const kernels::GpuEnvironment& gpu, const kernels::Shape& shape, const kernels::PrepareOptions& options);
std::unique_ptr<kernels::Case> one_sided_case(const kernels::GpuEnvironment& gpu, const kernels::Shape& shape, const kernels::PrepareOptions& options);
std::unique_ptr<kernels::Case> nccl_case(const kernels::GpuEnvironment& gpu, const kernels::Shape& shape, const kernels::PrepareOptions& options);

// ctas of the shape, or two blocks a multiprocessor.
int blocks_of(const kernels::GpuEnvironment& gpu, const kernels::Shape& shape);
// What the drawn tokens of all ranks make the busiest rank move.
kernels::Work work_of(const kernels::Shape& shape, const std::vector<RankTokens>& tokens);
// Bits are compared, so the only good number is none; as a CheckResult.
kernels::CheckResult bits_equal(unsigned long long differences, const kernels::CheckOptions& options, const std::string& where);

}  // namespace rackcast::a2a
