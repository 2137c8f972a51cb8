// Sparse latent attention: inputs, FP64 reference, launches.
#include "kernels/sparse_attention.hpp"

#include <algorithm>

#include "kernels/device.hpp"
#include "kernels/latent_case.cuh"
#include "kernels/latent_kv.cuh"
#include "kernels/sparse_attention_kernels.hpp"

namespace rackcast::kernels {
namespace {

constexpr double softmax_scale = 0.04419417382415922;  // 512^-1/2

struct IndexPlan {
  int keys, window, query_tokens;
  int window_rows;    // rows of a request's window region
  int selected_rows;  // rows of a request's compressed region, a power of two
  int locality;       // 0 rows, 1 pages, 2 contiguous
  bool prefill, ragged;
  std::uint64_t seed;
};

// Rows of each token: distinct within the token. The window is the run that ends at the token.
__global__ void make_indices(std::int32_t* indices, int tokens, IndexPlan plan) {
  for (std::int64_t at = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; at < std::int64_t{tokens} * plan.keys;
       at += std::int64_t{gridDim.x} * blockDim.x) {
    const int token = static_cast<int>(at / plan.keys), k = static_cast<int>(at % plan.keys);
    const int request = plan.prefill ? 0 : token / plan.query_tokens, within = plan.prefill ? token : token % plan.query_tokens;
    const std::uint64_t draw = random_bits(plan.seed, static_cast<std::uint64_t>(token));
    std::int64_t slot;
    if (k < plan.window) {
      slot = std::int64_t{request} * plan.window_rows + within + k;
    } else {
      const int s = k - plan.window, mask = plan.selected_rows - 1;
      int row;
      if (plan.locality == 0) row = (static_cast<int>(draw & 0xffff) + s * static_cast<int>((draw >> 20 & 0xffff) | 1)) & mask;
      else if (plan.locality == 1) row = (((static_cast<int>(draw & 0xffff) + (s >> 6) * static_cast<int>((draw >> 20 & 0xff) | 1)) << 6) + (s & 63)) & mask;
      else row = ((static_cast<int>(draw & 0xffff) << 6) + s) & mask;
      slot = std::int64_t{request} * plan.selected_rows + row;
    }
    if (plan.ragged && (token == 0 || random_bits(plan.seed + 1, static_cast<std::uint64_t>(at)) % 64 < (draw >> 40) % 64)) slot = -1;
    indices[at] = static_cast<std::int32_t>(slot);
  }
}

struct SparseSource {
  LatentParams p;
  KvFormat format;
  __device__ int keys(int) const { return p.keys; }
  __device__ int slot(int item, int k) const { return p.indices[static_cast<std::size_t>(item) * p.keys + k]; }
  __device__ bool visible(int item, int, int k) const { return slot(item, k) >= 0; }
  __device__ double query(int item, int row, int dim) const {
    return static_cast<float>(p.q[(static_cast<std::size_t>(item) * latent_heads + row) * latent_dims + dim]);
  }
  __device__ double value(int item, int k, int dim) const { return latent_value(format, p.pools, k >= p.window, slot(item, k), dim); }
  __device__ double sink(int, int row) const { return p.sink[row]; }
};

__global__ void decode_row(SparseSource source, int token, double* values) {  // [keys][512]; 0 where there is no row
  const int k = blockIdx.x;
  for (int d = threadIdx.x; d < latent_dims; d += blockDim.x)
    values[k * latent_dims + d] = source.slot(token, k) < 0 ? 0 : source.value(token, k, d);
}

__global__ void write_v4_rows(std::uint8_t* pool, std::size_t rows, std::uint64_t seed) {  // rope part and scales
  for (std::size_t at = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; at < rows * 72; at += std::size_t{gridDim.x} * blockDim.x) {
    const int row = static_cast<int>(at / 72), i = static_cast<int>(at % 72);
    const std::uint64_t bits = random_bits(seed, at);
    if (i < 64) {
      const float value = (static_cast<float>(bits & 0xffff) + static_cast<float>(bits >> 16 & 0xffff) + static_cast<float>(bits >> 32 & 0xffff) - 98302.5f) / 32768.f;
      const_cast<__nv_bfloat16*>(reinterpret_cast<const __nv_bfloat16*>(v4_values(pool, row) + 448))[i] = __float2bfloat16(value);
    } else {
      const_cast<std::uint8_t*>(v4_scales(pool, row))[i - 64] = static_cast<std::uint8_t>(125 + bits % 4);  // 2^-2 .. 2^1
    }
  }
}

__global__ void write_scales(std::uint8_t* pool, std::size_t rows, int row_bytes, int first, int count, bool e4m3, std::uint64_t seed) {
  for (std::size_t at = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; at < rows * static_cast<std::size_t>(count); at += std::size_t{gridDim.x} * blockDim.x) {
    const std::uint64_t bits = random_bits(seed, at);
    pool[at / static_cast<std::size_t>(count) * static_cast<std::size_t>(row_bytes) + static_cast<std::size_t>(first) + at % static_cast<std::size_t>(count)] =
        e4m3 ? static_cast<std::uint8_t>(0x28 + bits % 0x18) : static_cast<std::uint8_t>(125 + bits % 4);
  }
}

void fill_pool(DeviceBytes& pool, KvFormat format, bool selected, std::size_t rows, std::uint64_t seed) {
  if (format == KvFormat::bf16) {
    fill_bf16_normal(pool.data(), rows * latent_dims, 1.f, seed);
    return;
  }
  if (format == KvFormat::v41 && selected) fill_e2m1(pool.data(), pool.bytes(), seed);
  else fill_e4m3_normal(pool.data(), pool.bytes(), 1.f, seed);
  auto* bytes = reinterpret_cast<std::uint8_t*>(pool.data());
  if (format == KvFormat::v4) write_v4_rows<<<1024, 256>>>(bytes, rows, seed + 1);
  else if (selected) write_scales<<<1024, 256>>>(bytes, rows, 288, 256, 32, true, seed + 1);
  else write_scales<<<1024, 256>>>(bytes, rows, 528, 512, 16, false, seed + 1);
  RACKCAST_LAUNCH_CHECK();
}

std::size_t pool_bytes(KvFormat format, bool selected, std::size_t rows) {
  const std::size_t whole = (rows + page_rows - 1) / page_rows * page_rows;
  return whole * static_cast<std::size_t>(kv_row_bytes(format, selected));
}

class SparseCase final : public Case {
 public:
  SparseCase(const GpuEnvironment& gpu, const Shape& shape, bool sm90, const PrepareOptions& options)
      : sm90_(sm90), sm_count_(gpu.sm_count), format_(kv_format(shape.text("format"))), tokens_(static_cast<int>(shape.number("tokens"))),
        window_(static_cast<int>(shape.number("window"))), keys_(window_ + static_cast<int>(shape.number("selected"))) {
    const bool prefill = shape.text("phase") == "prefill";
    const int query_tokens = static_cast<int>(shape.number("query_tokens"));
    const std::size_t requests = prefill ? 1 : static_cast<std::size_t>((tokens_ + query_tokens - 1) / query_tokens);
    int selected_rows = 2048;
    while (selected_rows < 4 * (keys_ - window_)) selected_rows *= 2;
    if (prefill) selected_rows = static_cast<int>(prefill_pool_rows);
    const int window_rows = window_ + (prefill ? tokens_ : query_tokens);
    const std::size_t touched = static_cast<std::size_t>(tokens_) * static_cast<std::size_t>(
        window_ * kv_row_bytes(format_, false) + (keys_ - window_) * kv_row_bytes(format_, true) + latent_heads * latent_dims * 4);
    sets_ = sets_needed(options, prefill ? touched / 64 : touched);
    const std::size_t window_total = requests * static_cast<std::size_t>(window_rows), selected_total = requests * static_cast<std::size_t>(selected_rows);
    outputs_ = LatentOutputs(tokens_, latent_heads, keys_, sm_count_);

    q_ = DeviceBuffer<__nv_bfloat16>(static_cast<std::size_t>(sets_) * query_size());
    fill_bf16_normal(q_.data(), q_.size(), 1.f, options.seed);
    window_bytes_ = pool_bytes(format_, false, window_total);
    selected_bytes_ = pool_bytes(format_, true, selected_total);
    window_pool_ = DeviceBytes(window_bytes_ * static_cast<std::size_t>(sets_));
    selected_pool_ = DeviceBytes(selected_bytes_ * static_cast<std::size_t>(sets_));
    fill_pool(window_pool_, format_, false, window_bytes_ / static_cast<std::size_t>(kv_row_bytes(format_, false)) * static_cast<std::size_t>(sets_), options.seed + 11);
    fill_pool(selected_pool_, format_, true, selected_bytes_ / static_cast<std::size_t>(kv_row_bytes(format_, true)) * static_cast<std::size_t>(sets_), options.seed + 13);
    indices_ = DeviceBuffer<std::int32_t>(static_cast<std::size_t>(sets_) * index_size());
    const std::string& locality = shape.text("locality");
    for (int set = 0; set < sets_; ++set) {
      const IndexPlan plan{keys_, window_, query_tokens, window_rows, selected_rows, locality == "rows" ? 0 : locality == "pages" ? 1 : 2,
                           prefill, shape.text("lengths") == "ragged", options.seed + 100 + static_cast<std::uint64_t>(set)};
      make_indices<<<256, 256>>>(indices_.data() + static_cast<std::size_t>(set) * index_size(), tokens_, plan);
      RACKCAST_LAUNCH_CHECK();
    }
    sink_ = DeviceBuffer<float>(latent_heads);
    fill_f32_normal(sink_.data(), latent_heads, 1.f, options.seed + 17);
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
  }

  int sets() const override { return sets_; }
  std::string detail() const override { return "splits=" + std::to_string(outputs_.plan.splits); }

  void launch(int set, Stream stream) override {
    const LatentParams p = params(set);
    if (sm90_) sparse_attention_sm90(p, format_, sm_count_, stream);
    else sparse_attention_portable(p, format_, stream);
    outputs_.combine(sink_.data(), stream);
  }

  CheckResult check(const CheckOptions& options) override {
    outputs_.poison_all();
    launch(0, nullptr);
    RACKCAST_CUDA_CHECK(cudaDeviceSynchronize());
    if (!outputs_.written()) return {false, 1, 1, latent_tolerance, "an output was not written, or is not a number"};
    const std::vector<SampledRow> samples = sample_rows(outputs_, std::min(48, tokens_ * latent_heads), options.seed);
    const SparseSource source{params(0), format_};
    std::vector<double> reference;
    CheckResult result = compare_samples(source, samples, outputs_, latent_dims, keys_, softmax_scale, 1, options, reference);
    if (index_size() <= 8192) result = both(result, compare_with_host(source, samples[1], reference, options));
    return result;
  }

 private:
  std::size_t query_size() const { return static_cast<std::size_t>(tokens_) * latent_heads * latent_dims; }
  std::size_t index_size() const { return static_cast<std::size_t>(tokens_) * static_cast<std::size_t>(keys_); }

  LatentParams params(int set) const {
    const std::size_t s = static_cast<std::size_t>(set);
    LatentParams p;
    p.q = q_.data() + s * query_size();
    p.pools = {reinterpret_cast<const std::uint8_t*>(window_pool_.data()) + s * window_bytes_,
               reinterpret_cast<const std::uint8_t*>(selected_pool_.data()) + s * selected_bytes_};
    p.indices = indices_.data() + s * index_size();
    p.sink = sink_.data();
    p.tokens = tokens_;
    p.keys = keys_;
    p.window = window_;
    p.scale_log2 = static_cast<float>(softmax_scale * 1.4426950408889634);
    outputs_.give(p);
    return p;
  }

  // The GPU reference itself against the CPU reference: sample 1 (the last token).
  CheckResult compare_with_host(const SparseSource& source, const SampledRow& sample, const std::vector<double>& gpu, const CheckOptions& options) {
    DeviceBuffer<double> decoded(static_cast<std::size_t>(keys_) * latent_dims);
    decode_row<<<static_cast<unsigned>(keys_), 128>>>(source, sample.item, decoded.data());
    RACKCAST_LAUNCH_CHECK();
    const std::vector<double> all = decoded.to_host();
    std::vector<std::int32_t> slots(static_cast<std::size_t>(keys_));
    copy_to_host(slots.data(), source.p.indices + static_cast<std::size_t>(sample.item) * static_cast<std::size_t>(keys_), slots.size() * 4);
    const std::size_t row = static_cast<std::size_t>(sample.item) * latent_heads + static_cast<std::size_t>(sample.row);
    const std::vector<double> query = bf16_row(source.p.q + row * latent_dims, latent_dims);
    std::vector<double> rows;
    for (std::size_t k = 0; k < slots.size(); ++k)
      if (slots[k] >= 0) rows.insert(rows.end(), all.begin() + static_cast<std::ptrdiff_t>(k * latent_dims), all.begin() + static_cast<std::ptrdiff_t>((k + 1) * latent_dims));
    const double sink = static_cast<double>(sink_.to_host()[static_cast<std::size_t>(sample.row)]);
    const AttentionRow host = attention_reference(query, rows, rows, latent_dims, softmax_scale, sink);
    return compare(host.out, std::span<const double>(gpu).subspan(latent_dims, latent_dims), 1e-9, options);
  }

  bool sm90_;
  int sm_count_;
  KvFormat format_;
  int tokens_, window_, keys_, sets_ = 1;
  LatentOutputs outputs_;
  std::size_t window_bytes_ = 0, selected_bytes_ = 0;
  DeviceBytes window_pool_, selected_pool_;
  DeviceBuffer<__nv_bfloat16> q_;
  DeviceBuffer<std::int32_t> indices_;
  DeviceBuffer<float> sink_;
};

}  // namespace

const Launcher& sparse_attention_launcher() {
  static const LatentLauncher<SparseCase> launcher(sparse_attention_family());
  return launcher;
}

}  // namespace rackcast::kernels
