// Tensor maps of row-major byte matrices for the copy engine (sm_90 on). The driver's encoder is looked up at run time, so
// that nothing links against the driver. Only for CUDA builds.
#pragma once
#include <cuda.h>

#include <cstdint>

namespace rackcast::kernels {

// rows x row_bytes; a box is box_rows x 128 bytes, stored with the 128-byte swizzle; rows past the end read as zeros.
CUtensorMap byte_matrix_map(const void* data, std::int64_t rows, std::int64_t row_bytes, int box_rows);

}  // namespace rackcast::kernels
