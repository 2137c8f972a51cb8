#include "kernels/tensor_map.hpp"

#include "kernels/device.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {

CUtensorMap rows_tensor_map(const void* base, std::uint64_t rows, std::uint64_t columns, std::uint32_t box_rows) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    RACKCAST_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess) throw Unavailable("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  CUtensorMap map;
  const cuuint64_t sizes[2] = {columns, rows}, strides[1] = {columns * 2};
  const cuuint32_t box[2] = {64, box_rows}, steps[2] = {1, 1};
  const CUresult result = encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(base), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                 CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  RACKCAST_CHECK(result == CUDA_SUCCESS, "cuTensorMapEncodeTiled says " + std::to_string(static_cast<int>(result)));
  return map;
}

}  // namespace rackcast::kernels
