#include "kernels/all_to_all.hpp"

#include "kernels/all_to_all_routing.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {

a2a::Shape a2a_shape(const Shape& shape) {
  a2a::Shape s;
  s.ranks = static_cast<int32_t>(shape.number("ranks"));
  s.tokens_max = static_cast<int32_t>(shape.number("tokens"));
  s.hidden = static_cast<int32_t>(shape.number("hidden"));
  s.top_k = static_cast<int32_t>(shape.number("top_k"));
  s.experts_per_rank = static_cast<int32_t>(shape.number("experts") / shape.number("ranks"));
  s.payload = shape.text("payload") == "fp8" ? a2a::Payload::fp8_block : a2a::Payload::bf16;
  return s;
}

namespace {

struct ModelShape {
  int hidden, top_k, experts;
};
constexpr ModelShape v4_flash{4096, 6, 256};
constexpr ModelShape v41_flash{5120, 6, 384};
constexpr ModelShape v4_pro{7168, 6, 384};
constexpr int rank_counts[] = {2, 4, 8, 16, 32, 64, 72};

struct Point {
  const char* part;
  const char* path;
  int ranks;
  int tokens;
  ModelShape model = v4_flash;
  const char* payload = "fp8";
  const char* routing = "balanced";
  int ctas = 0;
};

Shape shape_of(const Point& p) {
  Shape s;
  s.set("part", p.part).set("path", p.path).set("ranks", p.ranks).set("tokens", p.tokens).set("hidden", p.model.hidden);
  // Redundant slots fill up the last rank, as an engine of that width needs.
  s.set("top_k", p.model.top_k).set("experts", int64_t{(p.model.experts + p.ranks - 1) / p.ranks} * p.ranks);
  s.set("payload", p.payload).set("routing", p.routing).set("ctas", p.ctas);
  return s;
}

void add_virtual(std::vector<Shape>& out, bool full) {
  for (const char* payload : {"fp8", "bf16"})
    for (const ModelShape& model : {v4_flash, v41_flash})
      for (const int tokens : {1024, 4096, 8192})
        for (const char* part : {"pack", "reduce"}) out.push_back(shape_of({part, "virtual", 8, tokens, model, payload}));
  for (const int tokens : {1, 128, 1024}) out.push_back(shape_of({"pair", "virtual", 8, tokens}));
  out.push_back(shape_of({"pair", "virtual", 32, 128}));
  if (!full) return;
  for (const int ranks : {2, 4, 8, 32})
    for (const int tokens : {1, 16, 128, 512, 1024, 8192})
      for (const char* part : {"pack", "reduce"}) {
        if (ranks * tokens > 65536) continue;  // windows of all ranks have to fit on one GPU
        out.push_back(shape_of({part, "virtual", ranks, tokens}));
        for (const int ctas : {8, 16, 24, 32, 64, 132})
          if (ranks == 8) out.push_back(shape_of({part, "virtual", ranks, tokens, v4_flash, "fp8", "balanced", ctas}));
      }
}

void add_one_sided(std::vector<Shape>& out, int ranks, bool full) {
  const std::vector<int> few = {1, 8, 32, 128, 512, 1024, 4096, 8192};
  const std::vector<int> many = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
  const auto add = [&](int tokens, const ModelShape& model, const char* routing, int ctas) {
    for (const char* part : {"pair", "dispatch", "combine"})
      for (const char* payload : {"fp8", "bf16"}) {
        if (std::string(part) == "combine" && std::string(payload) == "bf16") continue;  // combine is bf16 either way
        out.push_back(shape_of({part, "lsa", ranks, tokens, model, payload, routing, ctas}));
      }
  };
  for (const int tokens : full ? many : few) add(tokens, v4_flash, "balanced", 0);
  for (const int tokens : full ? many : std::vector<int>{1, 128, 1024}) add(tokens, v41_flash, "balanced", 0);
  if (full)
    for (const int tokens : few) add(tokens, v4_pro, "balanced", 0);
  for (const char* routing : {"zipf1.4", "all_to_one"})
    for (const int tokens : full ? few : std::vector<int>{128, 1024}) add(tokens, v4_flash, routing, 0);
  for (const int ctas : {8, 16, 24, 32, 64, 132})
    for (const int tokens : full ? few : std::vector<int>{128, 1024})
      for (const char* part : {"dispatch", "combine"})
        out.push_back(shape_of({part, "lsa", ranks, tokens, v4_flash, "fp8", "balanced", ctas}));
}

void add_baselines(std::vector<Shape>& out, int ranks, bool full) {
  for (const char* path : {"sendrecv", "padded"})
    for (const int tokens : full ? std::vector<int>{1, 8, 32, 128, 512, 1024, 4096, 8192} : std::vector<int>{1, 128, 1024, 4096})
      for (const char* part : {"pair", "dispatch", "combine"}) {
        out.push_back(shape_of({part, path, ranks, tokens}));
        if (full && std::string(part) != "combine") out.push_back(shape_of({part, path, ranks, tokens, v4_flash, "bf16"}));
      }
}

class AllToAll final : public Family {
 public:
  std::string name() const override { return "all_to_all"; }
  std::string summary() const override { return "expert dispatch and combine: one-sided, grouped send/recv, padded; virtual ranks on one GPU"; }
  std::string math(const Shape&) const override { return "none"; }
  std::vector<Axis> axes() const override {
    return {{"part", "pair, dispatch, combine; pack and reduce: the local work of one virtual rank"},
            {"path", "lsa, sendrecv, padded between GPUs; virtual: all ranks on this GPU"},
            {"ranks", "GPUs of the engine"},
            {"tokens", "tokens of each rank"},
            {"hidden", "values of a token"},
            {"top_k", "experts of a token"},
            {"experts", "expert slots over all ranks, redundant ones included"},
            {"payload", "dispatched as fp8 with block scales or bf16; combine is bf16"},
            {"routing", "balanced, zipf<exponent>, all_to_one"},
            {"ctas", "blocks of 512 threads; 0: two per multiprocessor"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> out;
    if (grid == Grid::sanitize) {
      for (const char* payload : {"fp8", "bf16"}) {
        out.push_back(shape_of({"pair", "virtual", 4, 12, v4_flash, payload}));
        out.push_back(shape_of({"pack", "virtual", 4, 40, v4_flash, payload, "all_to_one"}));
        out.push_back(shape_of({"pair", "lsa", 2, 40, v4_flash, payload}));
      }
      out.push_back(shape_of({"pair", "sendrecv", 2, 40}));
      out.push_back(shape_of({"pair", "padded", 2, 40}));
      return out;
    }
    const bool full = grid == Grid::full;
    add_virtual(out, full);
    for (const int ranks : rank_counts) {
      add_one_sided(out, ranks, full);
      add_baselines(out, ranks, full);
    }
    return unique(std::move(out));
  }
  Work work(const Shape& shape) const override {
    const a2a::Shape s = a2a_shape(shape);
    const std::string& part = shape.text("part");
    const double copies = shape.text("routing") == "all_to_one" ? 1 : a2a::expected_copies(s.ranks, s.ranks * s.experts_per_rank, s.top_k);
    const double tokens = static_cast<double>(shape.number("tokens"));
    const double input = tokens * 2 * s.hidden;
    const double out = tokens * copies * static_cast<double>(s.dispatch_row_bytes());
    const double back = tokens * copies * static_cast<double>(s.combine_row_bytes());
    const bool dispatches = part != "combine" && part != "reduce";
    const bool combines = part != "dispatch" && part != "pack";
    Work work;
    work.bytes_hbm = (dispatches ? input + out : 0) + (combines ? back + input : 0);
    work.touched = tokens * copies;
    if (shape.text("path") == "virtual") {
      // The stand-in experts read every row and write its result; every rank works.
      if (part == "pair") work.bytes_hbm = (work.bytes_hbm + out + back) * s.ranks;
      return work;
    }
    const double remote = static_cast<double>(s.ranks - 1) / s.ranks;
    work.bytes_link = ((dispatches ? out : 0) + (combines ? back : 0)) * remote;
    return work;
  }
  std::vector<Bar> bars() const override {
    // 65% of what a copy reaches on the H200 (4.3 TB/s, bytes read and written): the rows are moved, not computed.
    constexpr double packing = 0.65 * 4300;
    std::vector<Bar> bars;
    for (const char* payload : {"fp8", "bf16"})
      for (const int tokens : {1024, 4096, 8192})
        for (const char* part : {"pack", "reduce"})
          bars.push_back({shape_of({part, "virtual", 8, tokens, v4_flash, payload}), "cold", Quantity::hbm_gb_s, packing, 3400, ""});
    return bars;
  }
};

}  // namespace

const Family& all_to_all_family() {
  static const AllToAll family;
  return family;
}

}  // namespace rackcast::kernels
