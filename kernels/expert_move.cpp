#include "kernels/expert_move.hpp"

namespace rackcast::kernels {

namespace {

// Three matrices of hidden x intermediate in MXFP4: 4 bits a weight and a scale byte per 32.
constexpr int64_t mxfp4_bytes(int64_t weights) { return weights / 2 + weights / 32; }
constexpr int64_t v4_flash_expert = mxfp4_bytes(3LL * 4096 * 2048);   // 13.4 MB
constexpr int64_t v41_flash_expert = mxfp4_bytes(3LL * 5120 * 2304);  // 18.8 MB

class ExpertMove final : public Family {
 public:
  std::string name() const override { return "expert_move"; }
  std::string summary() const override { return "expert weights to the next rank, alone and beside a decode-like load"; }
  std::string math(const Shape&) const override { return "none"; }
  std::vector<Axis> axes() const override {
    return {{"part", "move: time of the movement; load: time of one link of the load"},
            {"beside", "none: alone; load or move: with the other one running"},
            {"path", "copy (copy engine) or kernel (blocks of the gather/scatter kernel)"},
            {"ranks", "GPUs; 1: within this GPU"},
            {"experts", "experts moved from each rank"},
            {"expert_bytes", "weights of one expert"},
            {"ctas", "blocks of the moving kernel"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> out;
    const auto add = [&](const char* part, const char* beside, const char* path, int ranks, int experts, int64_t bytes, int ctas) {
      Shape s;
      s.set("part", part).set("beside", beside).set("path", path).set("ranks", ranks).set("experts", experts).set("expert_bytes", bytes).set("ctas", ctas);
      out.push_back(std::move(s));
    };
    for (const int ranks : {1, 2, 4, 8, 16, 32, 64, 72}) {
      if (grid == Grid::sanitize) {
        if (ranks > 2) break;
        add("move", "none", "kernel", ranks, 1, 65536, 8);
        continue;
      }
      std::vector<int> experts = {1, 4, 12};
      if (grid == Grid::full) experts = {1, 2, 4, 6, 8, 12};
      for (const int64_t bytes : {v4_flash_expert, v41_flash_expert}) {
        if (grid != Grid::full && bytes != v41_flash_expert) continue;
        for (const int count : experts)
          for (const auto& [path, ctas] : {std::pair{"copy", 0}, {"kernel", 8}, {"kernel", 32}})
            for (const auto& [part, beside] : {std::pair{"move", "none"}, {"move", "load"}, {"load", "none"}, {"load", "move"}}) {
              // The load alone is the same whatever would be moved.
              if (std::string(part) == "load" && std::string(beside) == "none" && (count != 1 || std::string(path) != "copy")) continue;
              add(part, beside, path, ranks, count, bytes, ctas);
            }
      }
    }
    return unique(std::move(out));
  }
  Work work(const Shape& shape) const override {
    Work work;
    if (shape.text("part") != "move") return work;
    const double bytes = static_cast<double>(shape.number("experts") * shape.number("expert_bytes"));
    if (shape.number("ranks") > 1) work.bytes_link = bytes;
    work.bytes_hbm = 2 * bytes;  // read here, and what the previous rank sends is written
    work.touched = static_cast<double>(shape.number("experts"));
    return work;
  }
};

}  // namespace

const Family& expert_move_family() {
  static const ExpertMove family;
  return family;
}

}  // namespace rackcast::kernels
