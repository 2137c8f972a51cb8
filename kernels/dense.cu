// Cases of the dense products: inputs, launches, a sampled check in double.
#include <algorithm>
#include <cmath>

#include "kernels/device.cuh"
#include "kernels/device.hpp"
#include "kernels/lt_product.hpp"
#include "kernels/moe_gemm_weights.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {
namespace {

constexpr float code_sigma = 60.0f;

// One operand, rows x k, as the device reference reads it.
struct Operand {
  LtMath math;
  bool weights;
  const void* data;
  const void* scale;
  std::int64_t rows, k, pitch;  // pitch: elements from row to row
  __device__ double operator()(std::int64_t row, std::int64_t column) const {
    const std::int64_t at = row * pitch + column;
    if (math == LtMath::bf16) return static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(data)[at]));
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    const auto* scales = static_cast<const float*>(scale);
    const auto* small = static_cast<const std::uint8_t*>(scale);
    if (math == LtMath::fp8) return static_cast<double>(e4m3_to_float(bytes[at])) * scales[0];
    if (math == LtMath::fp8_block) {
      const std::int64_t block = column / 128, blocks = k / 128;
      return static_cast<double>(e4m3_to_float(bytes[at])) * (weights ? scales[row / 128 * ((blocks + 3) / 4 * 4) + block] : scales[block * rows + row]);
    }
    if (math == LtMath::mxfp8) return static_cast<double>(e4m3_to_float(bytes[at])) * ue8m0_to_float(small[scale_place(row, column / 32, k / 32)]);
    const std::uint8_t pair = bytes[at / 2];  // the even element in the low nibble
    return static_cast<double>(e2m1_to_float(at % 2 ? pair >> 4 : pair & 15)) * e4m3_to_float(small[scale_place(row, column / 16, k / 16)]);
  }
};

struct Place {
  std::int64_t row, column;
};

__global__ void dense_reference_kernel(Operand x, Operand w, const Place* places, double* out) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < x.k; i += 32) sum += x(places[blockIdx.x].row, i) * w(places[blockIdx.x].column, i);
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

struct Tensor {
  DeviceBuffer<std::uint8_t> data, scale;
};

Tensor random_tensor(LtMath math, bool weights, std::int64_t rows, std::int64_t k, float sigma, std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(rows * k);
  Tensor tensor;
  tensor.data = DeviceBuffer<std::uint8_t>(math == LtMath::bf16 ? count * 2 : math == LtMath::nvfp4 ? count / 2 : count);
  const auto floats = [&](std::size_t n) {
    tensor.scale = DeviceBuffer<std::uint8_t>(n * 4);
    fill_scales(reinterpret_cast<float*>(tensor.scale.data()), n, sigma / code_sigma, seed + 1);
  };
  const auto tiles = [&](std::int64_t columns) { return static_cast<std::size_t>((rows + 127) / 128 * ((columns + 3) / 4) * 512); };
  switch (math) {
    case LtMath::bf16: fill_bf16_normal(tensor.data.data(), count, sigma, seed); break;
    case LtMath::fp8:
      fill_e4m3_normal(tensor.data.data(), count, code_sigma, seed);
      floats(1);
      break;
    case LtMath::fp8_block:
      fill_e4m3_normal(tensor.data.data(), count, code_sigma, seed);
      floats(static_cast<std::size_t>(weights ? (rows + 127) / 128 * ((k / 128 + 3) / 4 * 4) : rows * (k / 128)));
      break;
    case LtMath::mxfp8: {
      fill_e4m3_normal(tensor.data.data(), count, code_sigma, seed);
      tensor.scale = DeviceBuffer<std::uint8_t>(tiles(k / 32));
      const int exponent = static_cast<int>(std::lround(std::log2(sigma / code_sigma)));
      fill_ue8m0(tensor.scale.data(), tensor.scale.size(), exponent - 1, exponent + 1, seed + 1);
      break;
    }
    case LtMath::nvfp4:
      fill_e2m1(tensor.data.data(), tensor.data.size(), seed);
      tensor.scale = DeviceBuffer<std::uint8_t>(tiles(k / 16));
      fill_i32_uniform(reinterpret_cast<std::int32_t*>(tensor.scale.data()), tensor.scale.size() / 4, 0x30303030, 0x30303037, seed + 1);  // near 0.5
      break;
  }
  return tensor;
}

class DenseCase final : public Case {
 public:
  DenseCase(const GpuEnvironment& gpu, const Shape& shape, const PrepareOptions& options)
      : problem_{shape.number("m"), shape.number("n"), shape.number("k"), static_cast<int>(shape.number("batch")), lt_math(shape.text("math")), false},
        product_(gpu, problem_), x_(random_tensor(problem_.math, false, problem_.m * problem_.batch, problem_.k, 1.0f, options.seed + 1)),
        out_(static_cast<std::size_t>(problem_.m * problem_.n * problem_.batch)) {
    const float sigma = 1.0f / std::sqrt(static_cast<float>(problem_.k));
    const double bytes = static_cast<double>(problem_.n * problem_.k * problem_.batch) * (problem_.math == LtMath::bf16 ? 2 : problem_.math == LtMath::nvfp4 ? 0.5 : 1);
    const int sets = sets_needed(options, static_cast<std::size_t>(bytes));
    for (int set = 0; set < sets; ++set)
      weights_.push_back(random_tensor(problem_.math, true, problem_.n * problem_.batch, problem_.k, sigma, options.seed + 10 + 3 * static_cast<std::uint64_t>(set)));
    std::vector<LtOperands> turns;
    for (int set = 0; set < this->sets(); ++set) turns.push_back(operands(set));
    product_.choose(turns);
  }

  int sets() const override { return static_cast<int>(weights_.size()); }
  void launch(int set, Stream stream) override { product_.run(operands(set), stream); }
  std::string detail() const override { return product_.detail(); }

  CheckResult check(const CheckOptions& options) override {
    poison(out_.data(), out_.bytes());
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    launch(0, nullptr);
    std::vector<double> expected, found;
    const std::vector<std::uint16_t> out = out_.to_host();
    for (int group = 0; group < problem_.batch; ++group) {
      std::vector<Place> places = {{0, 0}, {problem_.m - 1, problem_.n - 1}};
      for (std::uint64_t i = 0; i < 510; ++i)
        places.push_back({static_cast<std::int64_t>(random_bits(options.seed, 2 * i) % static_cast<std::uint64_t>(problem_.m)),
                          static_cast<std::int64_t>(random_bits(options.seed, 2 * i + 1) % static_cast<std::uint64_t>(problem_.n))});
      const DeviceBuffer<Place> on_device{std::span<const Place>(places)};
      DeviceBuffer<double> sums(places.size());
      const bool wide = problem_.math == LtMath::bf16;
      const auto at = [&](const Tensor& tensor, std::int64_t elements) { return tensor.data.data() + elements * (wide ? 2 : 1); };
      const Operand x{problem_.math, false, at(x_, group * problem_.k), x_.scale.data(), problem_.m, problem_.k, problem_.k * problem_.batch};
      const Operand w{problem_.math, true, at(weights_[0], group * problem_.n * problem_.k), weights_[0].scale.data(), problem_.n, problem_.k, problem_.k};
      dense_reference_kernel<<<static_cast<unsigned>(places.size()), 32>>>(x, w, on_device.data(), sums.data());
      RACKCAST_LAUNCH_CHECK();
      const std::vector<double> reference = sums.to_host();
      for (std::size_t i = 0; i < places.size(); ++i) {
        expected.push_back(reference[i]);
        found.push_back(bf16_to_double(out[static_cast<std::size_t>((places[i].row * problem_.batch + group) * problem_.n + places[i].column)]));
      }
    }
    // fp8's fast accumulation keeps about 14 bits; the others sum in fp32 and round once to bf16.
    CheckResult result = compare(expected, found, problem_.math == LtMath::fp8 ? 1e-2 : 5e-3, options);
    if (result.ok && count_nan_bf16(out_.data(), out_.size())) {
      result.ok = false;
      result.note = "not every output was written";
    }
    return result;
  }

 private:
  LtOperands operands(int set) const {
    const Tensor& w = weights_[static_cast<std::size_t>(set)];
    const bool scaled = problem_.math != LtMath::bf16;
    return {x_.data.data(), w.data.data(), scaled ? x_.scale.data() : nullptr, scaled ? w.scale.data() : nullptr, out_.data()};
  }

  LtProblem problem_;
  LtProduct product_;
  Tensor x_;
  std::vector<Tensor> weights_;
  DeviceBuffer<std::uint16_t> out_;
};

class DenseLauncher final : public Launcher {
 public:
  const Family& family() const override { return dense_family(); }
  std::vector<std::string> implementations(const GpuEnvironment& gpu, const Shape& shape) const override {
    const LtMath math = lt_math(shape.text("math"));
    if (math == LtMath::fp8_block && gpu.cc_major != 9) return {};
    if ((math == LtMath::mxfp8 || math == LtMath::nvfp4) && gpu.cc_major < 10) return {};
    return {"cublaslt"};
  }
  std::unique_ptr<Case> prepare(const GpuEnvironment& gpu, const Shape& shape, const std::string&, const PrepareOptions& options) const override {
    return std::make_unique<DenseCase>(gpu, shape, options);
  }
};

}  // namespace

const Launcher& dense_launcher() {
  static const DenseLauncher launcher;
  return launcher;
}

}  // namespace rackcast::kernels
