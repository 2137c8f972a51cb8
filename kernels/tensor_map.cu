#include "kernels/tensor_map.hpp"

#include <string>

#include "kernels/device.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {
namespace {

using Encode = CUresult(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                        const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

Encode* encoder() {
  static Encode* const found = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result;
    RACKCAST_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result));
    if (!function || result != cudaDriverEntryPointSuccess) throw Unavailable("the driver has no tensor maps");
    return reinterpret_cast<Encode*>(function);
  }();
  return found;
}

}  // namespace

CUtensorMap byte_matrix_map(const void* data, std::int64_t rows, std::int64_t row_bytes, int box_rows) {
  CUtensorMap map;
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(row_bytes), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(row_bytes)};
  const cuuint32_t box[2] = {128, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[2] = {1, 1};
  const CUresult status = encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<void*>(data), sizes, strides, box, steps,
                                    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  RACKCAST_CHECK(status == CUDA_SUCCESS, "tensor map refused, error " + std::to_string(static_cast<int>(status)));
  return map;
}

}  // namespace rackcast::kernels
