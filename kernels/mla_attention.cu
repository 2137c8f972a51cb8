// Dense MLA: inputs, FP64 reference, launches.
#include "kernels/mla_attention.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/device.hpp"
#include "kernels/latent_case.cuh"
#include "kernels/mla_problem.cuh"
#include "kernels/sparse_attention.hpp"

namespace rackcast::kernels {
namespace {

constexpr double softmax_scale = 0.07216878364870322;  // 192^-1/2: the head dimension before absorption

struct MlaSource {
  MlaParams p;
  __device__ int keys(int request) const { return p.lengths[request]; }
  __device__ bool visible(int request, int row, int k) const { return k < p.lengths[request] - p.query_tokens + row / p.heads + 1; }
  __device__ double query(int request, int row, int dim) const {
    return static_cast<float>(p.q[(static_cast<std::size_t>(request) * p.query_tokens * p.heads + row) * mla_qk_dims + dim]);
  }
  __device__ double value(int request, int k, int dim) const {
    const std::size_t page = p.pages[static_cast<std::size_t>(request) * p.pages_per_request + k / page_rows];
    return static_cast<float>(reinterpret_cast<const __nv_bfloat16*>(p.kv)[(page * page_rows + k % page_rows) * mla_qk_dims + dim]);
  }
  __device__ double sink(int, int) const { return -__builtin_huge_val(); }
};

class MlaCase final : public Case {
 public:
  MlaCase(const GpuEnvironment& gpu, const Shape& shape, bool sm90, const PrepareOptions& options)
      : sm90_(sm90), sm_count_(gpu.sm_count), requests_(static_cast<int>(shape.number("requests"))), context_(static_cast<int>(shape.number("context"))),
        heads_(static_cast<int>(shape.number("heads"))), query_tokens_(static_cast<int>(shape.number("query_tokens"))) {
    pages_ = (context_ + page_rows - 1) / page_rows;
    const std::size_t kv_values = static_cast<std::size_t>(requests_) * static_cast<std::size_t>(pages_) * page_rows * mla_qk_dims;
    sets_ = sets_needed(options, kv_values * 2 + q_size() * 2);
    outputs_ = LatentOutputs(requests_, rows(), context_, sm_count_);
    kv_ = DeviceBuffer<__nv_bfloat16>(kv_values * static_cast<std::size_t>(sets_));
    fill_bf16_normal(kv_.data(), kv_.size(), 1.f, options.seed);
    q_ = DeviceBuffer<__nv_bfloat16>(q_size() * static_cast<std::size_t>(sets_));
    fill_bf16_normal(q_.data(), q_.size(), 0.6f, options.seed + 3);  // logits of order one
    std::vector<std::int32_t> lengths, pages(static_cast<std::size_t>(requests_) * static_cast<std::size_t>(pages_));
    for (int r = 0; r < requests_; ++r) {
      const auto part = static_cast<std::int32_t>(std::int64_t{context_} * (r + 1) / requests_);
      lengths.push_back(std::max(query_tokens_, shape.text("lengths") == "ragged" ? part : context_));
    }
    std::iota(pages.begin(), pages.end(), 0);
    for (std::size_t i = pages.size(); i > 1; --i) std::swap(pages[i - 1], pages[random_bits(options.seed + 5, i) % i]);
    lengths_ = DeviceBuffer<std::int32_t>(std::span<const std::int32_t>(lengths));
    page_table_ = DeviceBuffer<std::int32_t>(std::span<const std::int32_t>(pages));
    host_lengths_ = lengths;
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
  }

  int sets() const override { return sets_; }
  std::string detail() const override { return "splits=" + std::to_string(outputs_.plan.splits); }

  void launch(int set, Stream stream) override {
    const MlaParams p = params(set);
    if (sm90_) mla_attention_sm90(p, sm_count_, stream);
    else mla_attention_portable(p, stream);
    outputs_.combine(nullptr, stream);
  }

  CheckResult check(const CheckOptions& options) override {
    outputs_.poison_all();
    launch(0, nullptr);
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    if (!outputs_.written()) return {false, 1, 1, latent_tolerance, "an output was not written, or is not a number"};
    const std::vector<SampledRow> samples = sample_rows(outputs_, 24, options.seed);
    const MlaSource source{params(0)};
    std::vector<double> reference;
    CheckResult result = compare_samples(source, samples, outputs_, mla_qk_dims, context_ + query_tokens_, softmax_scale, 0, options, reference);
    if (requests_ * context_ <= 1024) result = both(result, compare_with_host(source, samples[1], reference, options));
    return result;
  }

 private:
  int rows() const { return query_tokens_ * heads_; }
  std::size_t q_size() const { return static_cast<std::size_t>(requests_) * static_cast<std::size_t>(rows()) * mla_qk_dims; }

  MlaParams params(int set) const {
    MlaParams p;
    p.q = q_.data() + static_cast<std::size_t>(set) * q_size();
    p.kv = reinterpret_cast<const std::uint8_t*>(kv_.data() + static_cast<std::size_t>(set) * (kv_.size() / static_cast<std::size_t>(sets_)));
    p.pages = page_table_.data();
    p.lengths = lengths_.data();
    p.requests = requests_;
    p.query_tokens = query_tokens_;
    p.heads = heads_;
    p.pages_per_request = pages_;
    p.pool_rows = requests_ * pages_ * page_rows;
    p.tiles = outputs_.tiles();
    p.scale_log2 = static_cast<float>(softmax_scale * 1.4426950408889634);
    outputs_.give(p);
    return p;
  }

  CheckResult compare_with_host(const MlaSource& source, const SampledRow& sample, const std::vector<double>& gpu, const CheckOptions& options) {
    const auto request = static_cast<std::size_t>(sample.item);
    const int visible = host_lengths_[request] - query_tokens_ + sample.row / heads_ + 1;
    const std::vector<double> query =
        bf16_row(source.p.q + (request * static_cast<std::size_t>(rows()) + static_cast<std::size_t>(sample.row)) * mla_qk_dims, mla_qk_dims);
    std::vector<double> keys;
    const std::vector<std::int32_t> pages = page_table_.to_host();
    for (int k = 0; k < visible; ++k) {
      const auto page = static_cast<std::size_t>(pages[request * static_cast<std::size_t>(pages_) + static_cast<std::size_t>(k / page_rows)]);
      const auto row = page * page_rows + static_cast<std::size_t>(k % page_rows);
      for (const double value : bf16_row(source.p.kv + row * mla_qk_dims * 2, mla_qk_dims)) keys.push_back(value);
    }
    const AttentionRow host = attention_reference(query, keys, keys, mla_value_dims, softmax_scale, -__builtin_huge_val());
    return compare(host.out, std::span<const double>(gpu).subspan(mla_value_dims, mla_value_dims), 1e-9, options);
  }

  bool sm90_;
  int sm_count_, requests_, context_, heads_, query_tokens_, pages_ = 1, sets_ = 1;
  LatentOutputs outputs_;
  std::vector<std::int32_t> host_lengths_;
  DeviceBuffer<__nv_bfloat16> kv_, q_;
  DeviceBuffer<std::int32_t> lengths_, page_table_;
};

}  // namespace

const Launcher& mla_attention_launcher() {
  static const LatentLauncher<MlaCase> launcher(mla_attention_family());
  return launcher;
}

}  // namespace rackcast::kernels
