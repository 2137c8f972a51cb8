// Dense MLA: inputs, FP64 reference, launches.
#include "kernels/mla_attention.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/attention_reference.cuh"
#include "kernels/device.hpp"
#include "kernels/latent_splits.hpp"
#include "kernels/mla_problem.cuh"
#include "kernels/sparse_attention.hpp"

namespace rackcast::kernels {

const Family& mla_attention_family();

namespace {

constexpr double tolerance = 1e-2;
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
    tiles_ = (rows() + 63) / 64;
    pages_ = (context_ + page_rows - 1) / page_rows;
    const std::size_t kv_values = static_cast<std::size_t>(requests_) * static_cast<std::size_t>(pages_) * page_rows * mla_qk_dims;
    sets_ = sets_needed(options, kv_values * 2 + q_size() * 2);
    plan_ = plan_splits(requests_ * tiles_, context_, sm_count_);
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
    out_ = DeviceBuffer<__nv_bfloat16>(static_cast<std::size_t>(requests_) * static_cast<std::size_t>(rows()) * mla_value_dims);
    lse_ = DeviceBuffer<float>(static_cast<std::size_t>(requests_) * static_cast<std::size_t>(rows()));
    if (plan_.splits > 1) {
      const std::size_t parts = static_cast<std::size_t>(requests_) * static_cast<std::size_t>(tiles_ * plan_.splits) * 64;
      partial_out_ = DeviceBuffer<float>(parts * mla_value_dims);
      partial_lse_ = DeviceBuffer<float>(parts);
    }
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
  }

  int sets() const override { return sets_; }
  std::string detail() const override { return "splits=" + std::to_string(plan_.splits); }

  void launch(int set, Stream stream) override {
    const MlaParams p = params(set);
    if (sm90_) mla_attention_sm90(p, sm_count_, stream);
    else mla_attention_portable(p, stream);
    if (plan_.splits > 1) combine_splits({p.partial_out, p.partial_lse, plan_.splits, requests_ * tiles_, tiles_, rows(), nullptr, p.out, p.lse}, stream);
  }

  CheckResult check(const CheckOptions& options) override {
    poison(out_.data(), out_.bytes());
    poison(lse_.data(), lse_.bytes());
    if (plan_.splits > 1) poison(partial_out_.data(), partial_out_.bytes());
    launch(0, nullptr);
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    CheckResult result;
    if (count_nan_bf16(out_.data(), out_.size()) || count_nan_f32(lse_.data(), lse_.size())) {
      result.note = "an output was not written, or is not a number";
      return result;
    }
    std::vector<SampledRow> samples;
    for (int i = 0; i < 24; ++i) {
      const std::uint64_t bits = random_bits(options.seed, static_cast<std::uint64_t>(i));
      samples.push_back({i == 0 ? 0 : i == 1 ? requests_ - 1 : static_cast<int>((bits >> 8) % static_cast<std::uint64_t>(requests_)),
                         i == 0 ? 0 : i == 1 ? rows() - 1 : static_cast<int>((bits >> 32) % static_cast<std::uint64_t>(rows()))});
    }
    const MlaSource source{params(0)};
    const DeviceBuffer<SampledRow> device_samples{std::span<const SampledRow>(samples)};
    DeviceBuffer<double> logits(samples.size() * static_cast<std::size_t>(context_ + query_tokens_)), out(samples.size() * mla_value_dims), lse(samples.size());
    attention_reference_kernel<<<static_cast<unsigned>(samples.size()), 256>>>(source, device_samples.data(), mla_qk_dims, mla_value_dims, softmax_scale,
                                                                                 logits.data(), context_ + query_tokens_, out.data(), lse.data());
    RACKCAST_LAUNCH_CHECK();
    const std::vector<double> want = out.to_host(), want_lse = lse.to_host();
    std::vector<double> got, got_lse;
    for (const SampledRow& sample : samples) {
      const std::size_t row = static_cast<std::size_t>(sample.item) * static_cast<std::size_t>(rows()) + static_cast<std::size_t>(sample.row);
      std::vector<std::uint16_t> values(mla_value_dims);
      copy_to_host(values.data(), out_.data() + row * mla_value_dims, mla_value_dims * 2);
      for (const std::uint16_t bits : values) got.push_back(bf16_to_double(bits));
      float value = 0;
      copy_to_host(&value, lse_.data() + row, 4);
      got_lse.push_back(static_cast<double>(value));
    }
    result = both(compare(want, got, tolerance, options), compare(want_lse, got_lse, 2e-3, options));
    if (requests_ * context_ <= 1024) result = both(result, compare_with_host(source, samples[1], want, options));
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
    p.tiles = tiles_;
    p.scale_log2 = static_cast<float>(softmax_scale * 1.4426950408889634);
    p.splits = plan_.splits;
    p.blocks_per_split = plan_.blocks_per_split;
    p.out = out_.data();
    p.lse = lse_.data();
    p.partial_out = partial_out_.data();
    p.partial_lse = partial_lse_.data();
    return p;
  }

  CheckResult compare_with_host(const MlaSource& source, const SampledRow& sample, const std::vector<double>& gpu, const CheckOptions& options) {
    const auto request = static_cast<std::size_t>(sample.item);
    const int visible = host_lengths_[request] - query_tokens_ + sample.row / heads_ + 1;
    std::vector<std::uint16_t> bits(mla_qk_dims);
    copy_to_host(bits.data(), source.p.q + (request * static_cast<std::size_t>(rows()) + static_cast<std::size_t>(sample.row)) * mla_qk_dims, bits.size() * 2);
    std::vector<double> query, keys;
    for (const std::uint16_t b : bits) query.push_back(bf16_to_double(b));
    const std::vector<std::int32_t> pages = page_table_.to_host();
    for (int k = 0; k < visible; ++k) {
      const auto page = static_cast<std::size_t>(pages[request * static_cast<std::size_t>(pages_) + static_cast<std::size_t>(k / page_rows)]);
      copy_to_host(bits.data(), source.p.kv + (page * page_rows + static_cast<std::size_t>(k % page_rows)) * mla_qk_dims * 2, bits.size() * 2);
      for (const std::uint16_t b : bits) keys.push_back(bf16_to_double(b));
    }
    const AttentionRow host = attention_reference(query, keys, keys, mla_value_dims, softmax_scale, -__builtin_huge_val());
    return compare(host.out, std::span<const double>(gpu).subspan(mla_value_dims, mla_value_dims), 1e-9, options);
  }

  bool sm90_;
  int sm_count_, requests_, context_, heads_, query_tokens_, tiles_ = 1, pages_ = 1, sets_ = 1;
  SplitPlan plan_;
  std::vector<std::int32_t> host_lengths_;
  DeviceBuffer<__nv_bfloat16> kv_, q_, out_;
  DeviceBuffer<std::int32_t> lengths_, page_table_;
  DeviceBuffer<float> lse_, partial_out_, partial_lse_;
};

class MlaLauncher final : public Launcher {
 public:
  const Family& family() const override { return mla_attention_family(); }
  std::vector<std::string> implementations(const GpuEnvironment& gpu, const Shape&) const override {
    if (gpu.cc_major == 9 && gpu.cc_minor == 0) return {"sm90", "portable"};
    return {"portable"};
  }
  std::unique_ptr<Case> prepare(const GpuEnvironment& gpu, const Shape& shape, const std::string& implementation, const PrepareOptions& options) const override {
    return std::make_unique<MlaCase>(gpu, shape, implementation == "sm90", options);
  }
};

}  // namespace

const Launcher& mla_attention_launcher() {
  static const MlaLauncher launcher;
  return launcher;
}

}  // namespace rackcast::kernels
