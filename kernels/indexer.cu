// The indexer: inputs, FP64 reference, launches.
#include <algorithm>
#include <numeric>

#include "kernels/device.cuh"
#include "kernels/device.hpp"
#include "kernels/indexer_kernels.hpp"

namespace rackcast::kernels {
namespace {

constexpr double tolerance = 2e-3;  // fp8 products are exact, sums are fp32 (the tensor core keeps 13 bits below the largest)

struct Pair {
  std::int32_t token, key;
};

__device__ int position_of(const IndexerParams& p, int token, int key) {
  return p.blocks ? p.blocks[static_cast<std::size_t>(token) * (p.key_count / index_block) + key / index_block] * index_block + key % index_block : key;
}

// A warp a pair; also writes the decoded operands for the CPU reference where wanted.
__global__ void reference_kernel(IndexerParams p, const Pair* pairs, double* logits, double* operands) {
  const Pair pair = pairs[blockIdx.x];
  const int lane = threadIdx.x, position = position_of(p, pair.token, pair.key), request = pair.token / p.query_tokens;
  const std::uint8_t* page = p.keys + static_cast<std::size_t>(p.pages[static_cast<std::size_t>(request) * p.pages_per_request + position / index_page]) * index_page_bytes_of(p.fp4);
  const int within = position % index_page;
  const std::uint8_t* scales = page + index_page * (p.fp4 ? index_dims / 2 : index_dims) + within * 4;
  const double scale = p.fp4 ? 1.0 : *reinterpret_cast<const float*>(scales);
  const auto value = [&](int d) -> double {
    if (!p.fp4) return e4m3_to_float(page[within * index_dims + d]);
    const unsigned pair_of_codes = page[within * (index_dims / 2) + d / 2];
    return static_cast<double>(e2m1_to_float((pair_of_codes >> (4 * (d & 1))) & 15)) * ue8m0_to_float(scales[d / 32]);
  };
  double total = 0;
  for (int h = lane; h < p.heads; h += 32) {
    const std::uint8_t* query = p.q + (static_cast<std::size_t>(pair.token) * p.heads + h) * index_dims;
    double dot = 0;
    for (int d = 0; d < index_dims; ++d) dot += static_cast<double>(e4m3_to_float(query[d])) * value(d);
    total += p.weights[static_cast<std::size_t>(pair.token) * p.heads + h] * fmax(dot, 0.0);
    if (operands && blockIdx.x == 0)
      for (int d = 0; d < index_dims; ++d) operands[h * index_dims + d] = e4m3_to_float(query[d]);
  }
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
  if (lane == 0) logits[blockIdx.x] = scale * total;
  if (operands && blockIdx.x == 0) {
    for (int d = lane; d < index_dims; d += 32) operands[p.heads * index_dims + d] = value(d);
    if (lane == 0) operands[(p.heads + 1) * index_dims] = scale;
  }
}

// fp4: four codes whose values span 2^-6 to 1, now and then one so small that nothing of its group counts.
__global__ void write_scales(std::uint8_t* pages, std::size_t count, bool fp4, std::uint64_t seed) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count * index_page; i += std::size_t{gridDim.x} * blockDim.x)
    if (fp4) {
      std::uint64_t bits = random_bits(seed, i);
      std::uint32_t codes = 0;
      for (int g = 0; g < 4; ++g, bits >>= 16) codes |= static_cast<std::uint32_t>(127 - ((bits & 0xff00) ? bits % 7 : 20)) << (8 * g);
      reinterpret_cast<std::uint32_t*>(pages + i / index_page * index_page_bytes_of(true) + index_page * (index_dims / 2))[i % index_page] = codes;
    } else {
      reinterpret_cast<float*>(pages + i / index_page * index_page_bytes_of(false) + index_page * index_dims)[i % index_page] =
          0.5f + static_cast<float>(random_bits(seed, i) >> 40) * 0x1p-24f;
    }
}

__global__ void gather(const float* logits, const Pair* pairs, int key_count, double* out) {
  out[blockIdx.x] = logits[static_cast<std::size_t>(pairs[blockIdx.x].token) * key_count + pairs[blockIdx.x].key];
}

class IndexerCase final : public Case {
 public:
  IndexerCase(const GpuEnvironment& gpu, const Shape& shape, bool sm90, const PrepareOptions& options) : sm90_(sm90), sm_count_(gpu.sm_count) {
    p_.requests = static_cast<int>(shape.number("requests"));
    p_.query_tokens = static_cast<int>(shape.number("query_tokens"));
    p_.heads = static_cast<int>(shape.number("heads"));
    p_.key_count = static_cast<int>(shape.number("keys"));
    p_.fp4 = shape.text("format") == "fp4";
    const bool sparse = shape.text("form") == "sparse";
    const int context = sparse ? p_.key_count * 4 : p_.key_count;  // the gathered blocks lie in a longer context
    p_.pages_per_request = (context + index_page - 1) / index_page;
    const std::size_t pages = static_cast<std::size_t>(p_.requests) * static_cast<std::size_t>(p_.pages_per_request);
    const std::size_t touched = sparse ? tokens() * static_cast<std::size_t>(p_.key_count * index_key_bytes(p_.fp4)) : pages * static_cast<std::size_t>(index_page_bytes_of(p_.fp4));
    sets_ = sets_needed(options, touched + tokens() * static_cast<std::size_t>(p_.key_count) * 4);
    set_bytes_ = pages * static_cast<std::size_t>(index_page_bytes_of(p_.fp4));
    keys_ = DeviceBuffer<std::uint8_t>(set_bytes_ * static_cast<std::size_t>(sets_));
    if (p_.fp4) fill_e2m1(keys_.data(), keys_.size(), options.seed);
    else fill_e4m3_normal(keys_.data(), keys_.size(), 1.f, options.seed);
    write_scales<<<1024, 256>>>(keys_.data(), pages * static_cast<std::size_t>(sets_), p_.fp4, options.seed + 1);
    RACKCAST_LAUNCH_CHECK();
    q_ = DeviceBuffer<std::uint8_t>(tokens() * static_cast<std::size_t>(p_.heads) * index_dims);
    fill_e4m3_normal(q_.data(), q_.size(), 1.f, options.seed + 2);
    weights_ = DeviceBuffer<float>(tokens() * static_cast<std::size_t>(p_.heads));
    fill_f32_normal(weights_.data(), weights_.size(), 0.1f, options.seed + 3);
    std::vector<std::int32_t> table(pages);
    std::iota(table.begin(), table.end(), 0);
    for (std::size_t i = table.size(); i > 1; --i) std::swap(table[i - 1], table[random_bits(options.seed + 4, i) % i]);
    pages_ = DeviceBuffer<std::int32_t>(std::span<const std::int32_t>(table));
    if (sparse) {
      blocks_ = DeviceBuffer<std::int32_t>(tokens() * static_cast<std::size_t>(p_.key_count / index_block));
      fill_i32_uniform(blocks_.data(), blocks_.size(), 0, context / index_block - 1, options.seed + 5);
    }
    logits_ = DeviceBuffer<float>(tokens() * static_cast<std::size_t>(p_.key_count));
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
  }

  int sets() const override { return sets_; }

  void launch(int set, Stream stream) override {
    if (sm90_ && p_.fp4) indexer_fp4_sm90(params(set), sm_count_, stream);
    else if (sm90_) indexer_sm90(params(set), sm_count_, stream);
    else indexer_portable(params(set), stream);
  }

  CheckResult check(const CheckOptions& options) override {
    poison(logits_.data(), logits_.bytes());
    launch(0, nullptr);
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    if (count_nan_f32(logits_.data(), logits_.size())) return {false, 1, 1, tolerance, "a logit was not written, or is not a number"};
    std::vector<Pair> pairs;
    const std::int32_t last_token = static_cast<std::int32_t>(tokens()) - 1, last_key = p_.key_count - 1;
    pairs.push_back({last_token, last_key});
    pairs.push_back({0, 0});
    for (std::uint64_t i = 0; i < 2048; ++i) {
      const std::uint64_t bits = random_bits(options.seed, i);
      pairs.push_back({static_cast<std::int32_t>((bits & 0xffffffff) % tokens()), static_cast<std::int32_t>((bits >> 32) % static_cast<std::uint64_t>(p_.key_count))});
    }
    const DeviceBuffer<Pair> device_pairs{std::span<const Pair>(pairs)};
    DeviceBuffer<double> want(pairs.size()), got(pairs.size()), operands(static_cast<std::size_t>((p_.heads + 1) * index_dims + 1));
    reference_kernel<<<static_cast<unsigned>(pairs.size()), 32>>>(params(0), device_pairs.data(), want.data(), operands.data());
    RACKCAST_LAUNCH_CHECK();
    gather<<<static_cast<unsigned>(pairs.size()), 1>>>(logits_.data(), device_pairs.data(), p_.key_count, got.data());
    RACKCAST_LAUNCH_CHECK();
    const std::vector<double> reference = want.to_host();
    return both(compare(reference, got.to_host(), tolerance, options), compare_with_host(operands.to_host(), reference[0], options));
  }

 private:
  std::size_t tokens() const { return static_cast<std::size_t>(p_.requests) * static_cast<std::size_t>(p_.query_tokens); }

  IndexerParams params(int set) const {
    IndexerParams p = p_;
    p.q = q_.data();
    p.weights = weights_.data();
    p.keys = keys_.data() + static_cast<std::size_t>(set) * set_bytes_;
    p.pages = pages_.data();
    p.blocks = blocks_.data();
    p.logits = logits_.data();
    return p;
  }

  // The GPU reference itself against the CPU reference, for the first pair.
  CheckResult compare_with_host(const std::vector<double>& operands, double gpu, const CheckOptions& options) const {
    const std::size_t query = static_cast<std::size_t>(p_.heads) * index_dims;
    const std::vector<float> all = weights_.to_host();
    const std::vector<double> weights(all.end() - p_.heads, all.end());
    const std::span<const double> values(operands);
    const double host = indexer_reference(values.first(query), weights, values.subspan(query, index_dims), operands.back());
    return compare(std::vector<double>{host}, std::vector<double>{gpu}, 1e-9, options);
  }

  bool sm90_;
  int sm_count_, sets_ = 1;
  std::size_t set_bytes_ = 0;
  IndexerParams p_;
  DeviceBuffer<std::uint8_t> keys_, q_;
  DeviceBuffer<float> weights_, logits_;
  DeviceBuffer<std::int32_t> pages_, blocks_;
};

class IndexerLauncher final : public Launcher {
 public:
  const Family& family() const override { return indexer_family(); }
  std::vector<std::string> implementations(const GpuEnvironment& gpu, const Shape&) const override {
    if (gpu.cc_major == 9 && gpu.cc_minor == 0) return {"sm90", "portable"};
    return {"portable"};
  }
  std::unique_ptr<Case> prepare(const GpuEnvironment& gpu, const Shape& shape, const std::string& implementation, const PrepareOptions& options) const override {
    return std::make_unique<IndexerCase>(gpu, shape, implementation == "sm90", options);
  }
};

}  // namespace

const Launcher& indexer_launcher() {
  static const IndexerLauncher launcher;
  return launcher;
}

}  // namespace rackcast::kernels
