// Chains of dependent small kernels in one CUDA graph: what a node costs, whatever it computes. The time of a chain is
// floor + slope * nodes; with programmatic dependent launch a node's start overlaps its predecessor's end.
#include "kernels/family.hpp"

namespace rackcast::kernels {
namespace {

class NodeChain final : public Family {
 public:
  std::string name() const override { return "node_chain"; }
  std::string summary() const override { return "dependent small kernels in a graph, with and without programmatic dependent launch"; }
  std::string math(const Shape&) const override { return "none"; }
  std::vector<Axis> axes() const override {
    return {{"nodes", "kernels in the chain"},
            {"blocks", "thread blocks of each kernel"},
            {"work", "empty, or add (read a neighbour block's value of the previous kernel, write it plus one)"},
            {"pdl", "1: programmatic dependent launch"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> shapes;
    const auto add = [&](int nodes, int blocks, const char* work, int pdl) {
      shapes.push_back(Shape().set("nodes", nodes).set("blocks", blocks).set("work", work).set("pdl", pdl));
    };
    for (const int pdl : {0, 1}) {
      if (grid == Grid::sanitize) {
        add(3, 8, "add", pdl);
        continue;
      }
      for (const int nodes : {1, 8, 64}) add(nodes, 128, "add", pdl);
      if (grid == Grid::bench) continue;
      add(32, 1, "add", pdl);
      if (grid == Grid::quick) continue;
      for (const int nodes : {1, 2, 4, 8, 16, 32, 64}) {
        add(nodes, 128, "add", pdl);
        add(nodes, 1, "add", pdl);
        add(nodes, 128, "empty", pdl);
      }
    }
    return unique(shapes);
  }
  Work work(const Shape& shape) const override {
    Work work;
    if (shape.text("work") == "add") {
      const double blocks = static_cast<double>(shape.number("blocks")), nodes = static_cast<double>(shape.number("nodes"));
      work.flop = nodes * blocks;
      work.bytes_hbm = 8 * blocks;  // first input and last output; what lies between stays in L2
    }
    return work;
  }
};

}  // namespace

const Family& node_chain_family() {
  static const NodeChain family;
  return family;
}

}  // namespace rackcast::kernels
