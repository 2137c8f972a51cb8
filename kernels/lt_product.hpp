// Dense products through cuBLASLt, which is opened at run time: out[m][n] = x[m][k] * w[n][k]^T, row-major, with the
// algorithm that was fastest when measured. Only for CUDA builds.
#pragma once
#include <cublasLt.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/device.hpp"

namespace rackcast::kernels {

// bf16: both operands; fp8: e4m3 with one fp32 scale a tensor; fp8_block: e4m3, x scaled per row and 128 (stored column block
// by column block), w per 128 x 128 (block row by block row, rows padded to four blocks), Hopper only; mxfp8: e4m3 with UE8M0
// a row and 32; nvfp4: e2m1 with e4m3 a row and 16, both Blackwell only, scales in tiles of 128 rows x 4 (scale_place).
enum class LtMath { bf16, fp8, fp8_block, mxfp8, nvfp4 };
LtMath lt_math(const std::string& name);

struct LtProblem {
  std::int64_t m = 0, n = 0, k = 0;
  int batch = 1;  // strided: x [m][batch][k], w [batch][n][k], out [m][batch][n]
  LtMath math = LtMath::bf16;
  bool fp32_out = false;
};

struct LtOperands {
  const void* x = nullptr;
  const void* w = nullptr;
  const void* x_scale = nullptr;  // null for bf16
  const void* w_scale = nullptr;
  void* out = nullptr;
};

// Place of scale (row, column) among the tiles that mxfp8 and nvfp4 want; columns counts a row's scales.
#ifdef __CUDACC__
__host__ __device__
#endif
inline std::int64_t scale_place(std::int64_t row, std::int64_t column, std::int64_t columns) {
  const std::int64_t tile = row / 128 * ((columns + 3) / 4) + column / 4;
  return tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + column % 4;
}

class LtLibrary;

class LtProduct {
 public:
  // Unavailable where cuBLASLt is missing or has no kernel for the problem.
  LtProduct(const GpuEnvironment& gpu, const LtProblem& problem);
  ~LtProduct();
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;

  // Times up to 16 algorithms by graph replay over the given sets, all in turn, nine rounds; of those within 2% of the fastest
  // the library's own first counts, so that two runs choose the same.
  void choose(const std::vector<LtOperands>& sets);
  void run(const LtOperands& operands, Stream stream) const;
  std::string detail() const { return detail_; }  // "algorithm 66, 1 of 8, cuBLASLt 130100"

 private:
  void run(const LtOperands& operands, const cublasLtMatmulAlgo_t& algorithm, Stream stream) const;
  std::shared_ptr<LtLibrary> library_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t w_ = nullptr, x_ = nullptr, out_ = nullptr;
  DeviceBytes workspace_;
  struct Candidate {  // nvcc 13.0 dies on a vector of the library's unnamed struct itself
    cublasLtMatmulAlgo_t algorithm;
  };
  std::vector<Candidate> candidates_;
  std::size_t chosen_ = 0;
  std::string detail_;
};

}  // namespace rackcast::kernels
