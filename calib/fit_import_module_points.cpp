// Tables of modules with one column an axis: gpu, op, backend, kernel, dtype, kv_dtype, phase, tokens, batch, seq, past_kv,
// m, n, k, hidden, inter, topk, experts, heads, ep, gpus, bytes, distribution, latency_us, source.
#include <set>

#include "calib/fit_import.hpp"
#include "calib/fit_work.hpp"
#include "sim/cost/operators.hpp"

namespace rackcast::calib {

namespace {

class Row {
 public:
  Row(const CsvTable& table, std::size_t row) : table_(table), row_(row) {}
  double number(const char* column, double otherwise = 0) const { return table_.number(row_, column).value_or(otherwise); }
  const std::string& text(const char* column) const { return table_.text(row_, column); }

 private:
  const CsvTable& table_;
  std::size_t row_;
};

// V3 shapes: 512 + 64 latent, heads of 128 + 64 and 128.
std::string mla(FitPoint& p, const Row& r) {
  const double batch = r.number("batch"), past = r.number("past_kv"), heads = r.number("heads");
  const bool fp8 = r.text("kv_dtype") == "fp8";
  const double row_bytes = fp8 ? 656 : 1152;
  if (!fp8) return "KV in BF16";
  if (r.text("phase") == "generation") {
    const double pairs = batch * (past + 1);
    p.family = "attention_mla_decode";
    p.flops = pairs * heads * 2 * (2 * 512 + 64);
    p.bytes = pairs * row_bytes;
    return {};
  }
  const double fresh = r.number("seq");
  p.family = "attention_mla_prefill";
  p.flops = batch * fresh * (past + fresh / 2) * heads * 2 * (128 + 64 + 128);
  p.bytes = batch * (past + fresh) * row_bytes;
  p.units = batch * fresh * heads / mla_heads_of_row_ns;
  return {};
}

bool low_latency(const Row& r) { return r.text("kernel").find("min_latency") != std::string::npos; }

// Engines run few tokens on the low-latency kernel and many on the other: where a table times both, each counts where it
// is used, and between the two the faster one (keep_fastest).
constexpr double few_tokens = 256, many_tokens = 1024;

std::string experts(FitPoint& p, const Row& r, bool both_kernels) {
  if (r.text("distribution") != "balanced") return "skewed routing";
  const std::string& dtype = r.text("dtype");
  if (low_latency(r) && r.number("tokens") > many_tokens) return "low-latency expert kernel beyond the few tokens that engines use it for";
  if (!low_latency(r) && both_kernels && r.number("tokens") <= few_tokens) return "throughput expert kernel at few tokens, where engines use the low-latency one";
  if (dtype != "nvfp4" && dtype != "fp8_block") return "expert dtype without a family";
  p.family = dtype == "nvfp4" ? "moe_nvfp4" : "moe_fp8";
  expert_work(p, {r.number("hidden"), r.number("inter"), r.number("experts"), r.number("topk")}, r.number("tokens"), r.number("ep", 1),
              dtype == "nvfp4" ? WeightType::nvfp4 : WeightType::fp8);
  return {};
}

std::string gemm(FitPoint& p, const Row& r) {
  const std::string& dtype = r.text("dtype");
  if (dtype != "bfloat16" && dtype != "fp8_block" && dtype != "nvfp4") return "dense dtype without a family";
  p.family = dtype == "bfloat16" ? "dense_bf16" : dtype == "fp8_block" ? "dense_fp8" : "dense_fp4";
  gemm_work(p, r.number("m"), r.number("n"), r.number("k"), dtype == "bfloat16" ? WeightType::bf16 : dtype == "fp8_block" ? WeightType::fp8 : WeightType::nvfp4);
  return {};
}

std::string all_reduce(FitPoint& p, const Row& r) {
  const double ranks = r.number("gpus");
  if (ranks < 2) return "one GPU";
  p.family = "all_reduce";
  p.ranks = ranks;
  p.link_bytes = 2 * r.number("bytes") * (ranks - 1) / ranks;
  return {};
}

std::string describe(FitPoint& p, const Row& r, bool both_kernels) {
  const std::string& op = r.text("op");
  if (op == "mla") return mla(p, r);
  if (op == "moe") return experts(p, r, both_kernels);
  if (op == "gemm") return gemm(p, r);
  if (op == "custom_allreduce") return all_reduce(p, r);
  return "op without a form here: " + op;
}

}  // namespace

void import_module_points(const CsvTable& t, Imported& out) {
  std::set<std::string> both_kernels;  // GPU and dtype
  for (std::size_t row = 0; row < t.rows(); ++row)
    if (const Row r(t, row); low_latency(r)) both_kernels.insert(r.text("gpu") + " " + r.text("dtype"));
  for (std::size_t row = 0; row < t.rows(); ++row) {
    const Row r(t, row);
    FitPoint p;
    p.gpu = gpu_name(r.text("gpu"));
    p.time_s = r.number("latency_us") * 1e-6;
    p.source = r.text("source");
    p.repeated = true;
    p.shape = r.text("op") + " " + r.text("phase") + " tokens=" + r.text("tokens") + " batch=" + r.text("batch") + " past=" + r.text("past_kv");
    const std::string reason = p.gpu.empty() ? "GPU that we have no file for" : p.time_s <= 0 ? "no time given" : describe(p, r, both_kernels.contains(r.text("gpu") + " " + r.text("dtype")));
    if (reason.empty()) out.points.push_back(p);
    else ++out.left_out[reason];
  }
  keep_fastest(out.points);
}

}  // namespace rackcast::calib
