// Tensor maps for Hopper's copy engine. The driver's encoder is looked up at run time, so nothing links libcuda.
#pragma once
#include <cuda.h>

#include <cstdint>

namespace rackcast::kernels {

// rows x columns of bf16, row-major; boxes of box_rows x 64 columns (128 bytes), 128-byte swizzle; outside reads zeros.
CUtensorMap rows_tensor_map(const void* base, std::uint64_t rows, std::uint64_t columns, std::uint32_t box_rows);

}  // namespace rackcast::kernels
