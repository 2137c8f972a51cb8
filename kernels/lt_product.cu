#include "kernels/lt_product.hpp"

#include <algorithm>
#include <functional>
#include <memory>

#include "kernels/dynamic_library.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {

LtMath lt_math(const std::string& name) {
  if (name == "bf16") return LtMath::bf16;
  if (name == "fp8") return LtMath::fp8;
  if (name == "fp8_block") return LtMath::fp8_block;
  if (name == "mxfp8") return LtMath::mxfp8;
  RACKCAST_CHECK(name == "nvfp4", "unknown kind of product " + name);
  return LtMath::nvfp4;
}

#define RACKCAST_LT_FUNCTIONS(X) \
  X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtGetVersion) X(cublasLtMatmul) X(cublasLtMatmulAlgoGetHeuristic) X(cublasLtMatmulDescCreate) \
  X(cublasLtMatmulDescDestroy) X(cublasLtMatmulDescSetAttribute) X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutDestroy) \
  X(cublasLtMatrixLayoutSetAttribute) X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceDestroy) X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoConfigGetAttribute)

// The library and one handle, shared by all products.
class LtLibrary {
 public:
  explicit LtLibrary(const std::vector<std::string>& folders) : library_({"libcublasLt.so.13", "libcublasLt.so"}, folders) {
#define X(name) name##_ = library_.function<std::remove_pointer_t<decltype(&name)>>(#name);
    RACKCAST_LT_FUNCTIONS(X)
#undef X
    if (cublasLtCreate_(&handle) != CUBLAS_STATUS_SUCCESS) throw Unavailable("cuBLASLt does not start on this GPU");
  }
  ~LtLibrary() { cublasLtDestroy_(handle); }
  LtLibrary(const LtLibrary&) = delete;
  LtLibrary& operator=(const LtLibrary&) = delete;

  static std::shared_ptr<LtLibrary> open(const std::vector<std::string>& folders) {
    static std::weak_ptr<LtLibrary> kept;  // one at a time; gone with its last product
    std::shared_ptr<LtLibrary> library = kept.lock();
    if (!library) kept = library = std::make_shared<LtLibrary>(folders);
    return library;
  }

#define X(name) decltype(&name) name##_ = nullptr;
  RACKCAST_LT_FUNCTIONS(X)
#undef X
  cublasLtHandle_t handle = nullptr;

 private:
  DynamicLibrary library_;
};

namespace {

constexpr std::size_t workspace_bytes = std::size_t{64} << 20;

void lt_check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string text = std::string(what) + ": cuBLASLt status " + std::to_string(static_cast<int>(status));
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH) throw Unavailable(text);
  throw InternalError(text);
}

cudaDataType operand_type(LtMath math) {
  return math == LtMath::bf16 ? CUDA_R_16BF : math == LtMath::nvfp4 ? CUDA_R_4F_E2M1 : CUDA_R_8F_E4M3;
}

}  // namespace

LtProduct::LtProduct(const GpuEnvironment& gpu, const LtProblem& problem) : library_(LtLibrary::open(gpu.library_folders)), workspace_(workspace_bytes) {
  const LtLibrary& lt = *library_;
  lt_check(lt.cublasLtMatmulDescCreate_(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "operation");
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
    lt_check(lt.cublasLtMatmulDescSetAttribute_(operation_, attribute, &value, sizeof value), "operation attribute");
  };
  // Column-major for the library: out^T (n x m) = w^T (n x k, stored k x n) * x^T (k x m).
  set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  if (problem.math == LtMath::fp8) set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(1));
  const auto modes = [&](cublasLtMatmulMatrixScale_t w, cublasLtMatmulMatrixScale_t x) {
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, w);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, x);
  };
  if (problem.math == LtMath::fp8_block) modes(CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F, CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F);
  if (problem.math == LtMath::mxfp8) modes(CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0, CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0);
  if (problem.math == LtMath::nvfp4) modes(CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3, CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3);
  if (problem.math != LtMath::bf16) {  // some kernels are offered only where there is a scale; run() puts the real ones
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(workspace_.data()));
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(workspace_.data()));
  }
  const auto layout = [&](cublasLtMatrixLayout_t& made, cudaDataType type, std::int64_t rows, std::int64_t columns, std::int64_t leading, std::int64_t stride) {
    lt_check(lt.cublasLtMatrixLayoutCreate_(&made, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), leading), "layout");
    if (problem.batch == 1) return;
    lt_check(lt.cublasLtMatrixLayoutSetAttribute_(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &problem.batch, sizeof problem.batch), "batch");
    lt_check(lt.cublasLtMatrixLayoutSetAttribute_(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride), "batch stride");
  };
  const cudaDataType type = operand_type(problem.math);
  layout(w_, type, problem.k, problem.n, problem.k, problem.n * problem.k);
  layout(x_, type, problem.k, problem.m, problem.k * problem.batch, problem.k);
  layout(out_, problem.fp32_out ? CUDA_R_32F : CUDA_R_16BF, problem.n, problem.m, problem.n * problem.batch, problem.n);
  cublasLtMatmulPreference_t preference = nullptr;
  lt_check(lt.cublasLtMatmulPreferenceCreate_(&preference), "preference");
  lt.cublasLtMatmulPreferenceSetAttribute_(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes, sizeof workspace_bytes);
  cublasLtMatmulHeuristicResult_t results[16];
  int found = 0;
  const cublasStatus_t status = lt.cublasLtMatmulAlgoGetHeuristic_(lt.handle, operation_, w_, x_, out_, out_, preference, 16, results, &found);
  lt.cublasLtMatmulPreferenceDestroy_(preference);
  for (int i = 0; i < found && status == CUBLAS_STATUS_SUCCESS; ++i)
    if (results[i].state == CUBLAS_STATUS_SUCCESS) candidates_.push_back({results[i].algo});
  if (candidates_.empty()) throw Unavailable("cuBLASLt has no kernel for this product");
}

LtProduct::~LtProduct() {
  if (w_) library_->cublasLtMatrixLayoutDestroy_(w_);
  if (x_) library_->cublasLtMatrixLayoutDestroy_(x_);
  if (out_) library_->cublasLtMatrixLayoutDestroy_(out_);
  if (operation_) library_->cublasLtMatmulDescDestroy_(operation_);
}

void LtProduct::run(const LtOperands& operands, const cublasLtMatmulAlgo_t& algorithm, Stream stream) const {
  const float one = 1, zero = 0;
  if (operands.w_scale) lt_check(library_->cublasLtMatmulDescSetAttribute_(operation_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &operands.w_scale, sizeof(void*)), "scale");
  if (operands.x_scale) lt_check(library_->cublasLtMatmulDescSetAttribute_(operation_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &operands.x_scale, sizeof(void*)), "scale");
  lt_check(library_->cublasLtMatmul_(library_->handle, operation_, &one, operands.w, w_, operands.x, x_, &zero, operands.out, out_, operands.out, out_, &algorithm,
                                    workspace_.data(), workspace_.bytes(), stream),
           "product");
}

void LtProduct::run(const LtOperands& operands, Stream stream) const { run(operands, candidates_[chosen_].algorithm, stream); }

namespace {

// A replay of `launches` calls, timed.
class Replay {
 public:
  Replay(Stream stream, int launches, const std::function<void(int)>& launch) : launches_(launches) {
    cudaGraph_t graph = nullptr;
    RACKCAST_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    try {
      for (int i = 0; i < launches; ++i) launch(i);
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      if (graph) cudaGraphDestroy(graph);
      throw;
    }
    RACKCAST_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    const cudaError_t made = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    RACKCAST_CUDA_CHECK(made);
  }
  ~Replay() {
    if (executable_) cudaGraphExecDestroy(executable_);
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  float launch_ms(Stream stream) {
    RACKCAST_CUDA_CHECK(cudaEventRecord(begin_.get(), stream));
    RACKCAST_CUDA_CHECK(cudaGraphLaunch(executable_, stream));
    RACKCAST_CUDA_CHECK(cudaEventRecord(end_.get(), stream));
    RACKCAST_CUDA_CHECK(cudaEventSynchronize(end_.get()));
    float milliseconds = 0;
    RACKCAST_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()));
    return milliseconds / static_cast<float>(launches_);
  }

 private:
  int launches_;
  cudaGraphExec_t executable_ = nullptr;
  EventOwner begin_, end_;
};

}  // namespace

void LtProduct::choose(const std::vector<LtOperands>& sets) {
  StreamOwner stream;
  struct Timed {
    std::size_t candidate;
    std::unique_ptr<Replay> replay;
    std::vector<float> ms;
  };
  std::vector<Timed> timed;
  int launches = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const auto launch = [&](int n) { run(sets[static_cast<std::size_t>(n) % sets.size()], candidates_[i].algorithm, stream.get()); };
    try {
      launch(0);  // loads the kernel
      RACKCAST_CUDA_CHECK(cudaStreamSynchronize(stream.get()));
      if (launches == 0) {  // enough for 200 us
        const float once = Replay(stream.get(), 2, launch).launch_ms(stream.get());
        launches = std::clamp(static_cast<int>(0.2f / std::max(once, 1e-3f)), 2, 64);
      }
      timed.push_back({i, std::make_unique<Replay>(stream.get(), launches, launch), {}});
    } catch (const Unavailable&) {
      continue;
    }
  }
  if (timed.empty()) throw Unavailable("no algorithm of cuBLASLt runs this product");
  const int rounds = timed.size() > 1 ? 10 : 0;  // all in turn, so that a clock that drifts favours none; the first round warms up
  float best = 1e30f;
  for (int round = 0; round < rounds; ++round)
    for (Timed& one : timed) one.ms.push_back(one.replay->launch_ms(stream.get()));
  const auto median = [](Timed& one) {
    std::sort(one.ms.begin() + 1, one.ms.end());
    return one.ms[5];
  };
  chosen_ = timed.front().candidate;
  if (rounds > 0) {
    for (Timed& one : timed) best = std::min(best, median(one));
    for (Timed& one : timed)
      if (one.ms[5] <= 1.02f * best) {
        chosen_ = one.candidate;
        break;
      }
  }
  std::int32_t id = -1;
  library_->cublasLtMatmulAlgoConfigGetAttribute_(&candidates_[chosen_].algorithm, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof id, nullptr);
  detail_ = "algorithm " + std::to_string(id) + ", rank " + std::to_string(chosen_ + 1) + " of " + std::to_string(candidates_.size()) + ", cuBLASLt " +
            std::to_string(library_->cublasLtGetVersion_());
}

}  // namespace rackcast::kernels
