// Tables of single kernels: family, op, shape, dtype, gpu, ranks, latency_us, source.
#include "calib/fit_import.hpp"
#include "calib/fit_work.hpp"
#include "sim/base/error.hpp"

namespace rackcast::calib {

namespace {

bool starts(std::string_view text, std::string_view head) { return text.substr(0, head.size()) == head; }

bool balanced(const ShapeText& s) { return s.word("dist").empty() || s.word("dist") == "balanced"; }

std::string gemm(FitPoint& p, const ShapeText& s, const std::string& dtype) {
  if (dtype == "bfloat16") p.family = "dense_bf16";
  else if (dtype == "nvfp4") p.family = "dense_fp4";
  else if (dtype == "fp8_block") return "FP8 block tables of vLLM 0.24 hold first-call cost";
  else return "dense dtype without a family";
  if (!s.has("m")) return "shape is not m, n, k";
  gemm_work(p, s.number("m"), s.number("n"), s.number("k"),
            dtype == "bfloat16" ? WeightType::bf16 : WeightType::nvfp4);
  return {};
}

std::string experts(FitPoint& p, const ShapeText& s, const std::string& dtype, double ranks) {
  if (!balanced(s)) return "skewed routing";
  const bool fp4 = starts(dtype, "w4a8");
  p.family = fp4 ? "moe_fp4" : "moe_fp8";
  expert_work(p, {s.number("hidden"), s.number("inter"), s.number("experts"), s.number("topk")}, s.number("global_tok"), ranks,
              fp4 ? WeightType::fp4 : WeightType::fp8);
  return {};
}

std::string fused(FitPoint& p, const ShapeText& s, double ranks) {
  if (!balanced(s)) return "skewed routing";
  p.family = "moe_fused";
  fused_expert_work(p, {s.number("hidden"), s.number("inter"), s.number("experts"), s.number("topk")}, s.number("tok/rank"), ranks,
                    WeightType::fp4);
  return {};
}

std::string exchange(FitPoint& p, const ShapeText& s, const std::string& op, double ranks) {
  const double hidden = s.number("#0");
  const ExpertLayer layer{hidden, 0, s.number("e", 256), s.number("topk")};
  if (starts(op, "DeepEP LL")) {
    const bool dispatch = op == "DeepEP LL dispatch";
    p.family = dispatch ? "a2a_dispatch" : "a2a_combine";
    if (p.gpu == "gb200" || p.gpu == "gb300") p.family = dispatch ? "deepep_dispatch" : "deepep_combine";
    exchange_work(p, layer, s.number("tok/rank"), ranks, dispatch ? hidden * (1 + 1.0 / 32) : 2 * hidden, false);
    return {};
  }
  if (starts(op, "TRT-LLM NVLinkOneSided")) {
    const bool dispatch = op.find("dispatch") != std::string::npos;
    p.family = dispatch ? "a2a_dispatch" : "a2a_combine";
    exchange_work(p, layer, s.number("tok/rank"), ranks, dispatch ? 0.5625 * hidden : 2 * hidden, true);
    return {};
  }
  return "all-to-all without a family: " + op;
}

std::string latent_core(FitPoint& p, const ShapeText& s) {
  constexpr double window = 128, ratio = 128, row = 584, head_dim = 512;
  const double requests = s.number("b"), fresh = s.number("new"), heads = 64;
  const double context = fresh > 1 ? s.number("ctx") + fresh / 2 : s.number("ctx") + 1;
  const double queries = requests * fresh, inside = std::min(window, context), outside = context / ratio;
  p.family = fresh > 8 ? "attention_latent_prefill" : "attention_latent_decode";
  if (fresh <= 8 && s.number("ctx") == 0) return "decode without context";
  p.units = queries;
  p.flops = queries * (inside + outside) * 4 * head_dim * heads;
  p.bytes = (requests * inside + queries + queries * outside) * row;
  return {};
}

std::string indexer(FitPoint& p, const ShapeText& s) {
  constexpr double heads = 64, head_dim = 128, ratio = 4, key = 132;
  const double keys = (s.number("ctx") + s.number("new")) / ratio;
  p.family = "indexer";
  p.flops = s.number("b") * s.number("new") * keys * 2 * heads * head_dim;
  p.bytes = s.number("b") * keys * key;
  return {};
}

// A whole attention layer; what its operators do not explain becomes the layer's composite.
std::string layer(FitPoint& p, const ShapeText& s, const std::string& op) {
  const bool decode = op.find("decode") != std::string::npos;
  if (!decode) return "prefill layers of another engine than the decode ones";
  p.model = "deepseek-v4-flash";
  p.family = starts(op, "CSA") ? "composite_selected" : "composite_all";
  p.requests = p.units = s.number("b");
  p.fresh = 1;
  p.context = s.number("ctx") + 1;
  return {};
}

std::string collective(FitPoint& p, const ShapeText& s, const std::string& op, double ranks) {
  const double bytes = 2 * s.number("message_size");  // elements of two bytes
  p.family = "nccl_" + op;
  p.ranks = ranks;
  p.link_bytes = bytes * (ranks - 1) / ranks * (op == "all_reduce" ? 2 : 1);
  return {};
}

std::string describe(FitPoint& p, const std::string& family, const std::string& op, const std::string& dtype, const ShapeText& s,
                     double ranks) {
  if (family == "gemm") return gemm(p, s, dtype);
  if (family == "moe_compute") return experts(p, s, dtype, ranks);
  if (family == "moe_fused" && starts(op, "mega_moe module")) return fused(p, s, ranks);
  if (family == "comm_a2a") return exchange(p, s, op, ranks);
  if (family == "comm_nccl") return collective(p, s, op, ranks);
  if (family == "attn_kernel") return latent_core(p, s);
  if (family == "indexer") return indexer(p, s);
  if (family == "attn_module") return layer(p, s, op);
  return "family without a form: " + family;
}

// One site of mHC is half of (pre + post), which the table gives apart.
void mix_streams(const CsvTable& t, std::size_t row, const std::string& gpu, std::map<std::pair<std::string, double>, FitPoint>& halves) {
  const ShapeText s(t.text(row, "shape"));
  constexpr double streams = 4;
  const double tokens = s.number("tok"), hidden = s.number("#0");
  FitPoint& p = halves[{gpu, tokens}];
  p.gpu = gpu;
  p.family = "mhc";
  p.source = t.text(row, "source");
  p.shape = t.text(row, "shape");
  p.bytes = 3 * streams * hidden * 2 * tokens;
  p.time_s += *t.number(row, "latency_us") * 1e-6 / 2;
  p.units += 1;
}

}  // namespace

void import_kernel_points(const CsvTable& t, Imported& out) {
  std::map<std::pair<std::string, double>, FitPoint> halves;
  for (std::size_t row = 0; row < t.rows(); ++row) {
    FitPoint p;
    p.gpu = gpu_name(t.text(row, "gpu"));
    const auto latency = t.number(row, "latency_us");
    if (p.gpu.empty() || !latency || *latency <= 0) {
      ++out.left_out[p.gpu.empty() ? "GPU that we have no file for" : "no time given"];
      continue;
    }
    if (t.text(row, "family") == "mhc") {
      mix_streams(t, row, p.gpu, halves);
      continue;
    }
    p.time_s = *latency * 1e-6;
    p.source = t.text(row, "source");
    p.shape = t.text(row, "shape");
    p.repeated = true;
    std::string reason;
    try {
      reason = describe(p, t.text(row, "family"), t.text(row, "op"), t.text(row, "dtype"), ShapeText(p.shape), t.number(row, "ranks").value_or(1));
    } catch (const UserError&) {
      reason = "shape without what its family needs";
    }
    if (reason.empty()) out.points.push_back(p);
    else ++out.left_out[reason];
  }
  for (auto& [key, p] : halves) {
    if (p.units == 2) out.points.push_back(p);
    else ++out.left_out["half of an mHC pair"];
  }
  keep_fastest(out.points);
}

}  // namespace rackcast::calib
