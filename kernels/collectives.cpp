#include "kernels/collectives.hpp"

#include "sim/base/error.hpp"

namespace rackcast::kernels {

double bus_factor(const std::string& collective, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  if (collective == "all_reduce") return 2 * others;
  RACKCAST_CHECK(collective == "all_gather" || collective == "reduce_scatter" || collective == "all_to_all", "unknown collective " + collective);
  return others;
}

namespace {

class Collectives final : public Family {
 public:
  std::string name() const override { return "collectives"; }
  std::string summary() const override { return "NCCL all-reduce, all-gather, reduce-scatter, all-to-all in bf16"; }
  std::string math(const Shape&) const override { return "bf16"; }
  std::vector<Axis> axes() const override {
    return {{"collective", "all_reduce, all_gather, reduce_scatter, all_to_all"},
            {"ranks", "GPUs"},
            {"bytes", "what one rank holds of the larger side, as nccl-tests counts it"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> out;
    for (const int ranks : {2, 4, 8, 16, 32, 64, 72})
      for (const char* collective : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}) {
        const int64_t unit = int64_t{72} * 16;  // every number of ranks divides it
        const int64_t step = grid == Grid::full ? 4 : 16;
        const int64_t most = grid == Grid::sanitize ? unit : int64_t{512} << 20;
        std::vector<int64_t> sizes = {most};
        for (int64_t bytes = unit; bytes < most; bytes *= step) sizes.push_back(bytes);
        for (const int64_t bytes : sizes) {
          Shape s;
          s.set("collective", collective).set("ranks", ranks).set("bytes", bytes / (int64_t{16} * ranks) * 16 * ranks);
          out.push_back(std::move(s));
        }
      }
    return unique(std::move(out));
  }
  Work work(const Shape& shape) const override {
    Work work;
    work.bytes_link = static_cast<double>(shape.number("bytes")) * bus_factor(shape.text("collective"), static_cast<int>(shape.number("ranks")));
    return work;
  }
};

}  // namespace

const Family& collectives_family() {
  static const Collectives family;
  return family;
}

}  // namespace rackcast::kernels
