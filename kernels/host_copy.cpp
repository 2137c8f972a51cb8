// Copies between pinned host memory and the GPU.
#include "kernels/family.hpp"

namespace rackcast::kernels {
namespace {

class HostCopy final : public Family {
 public:
  std::string name() const override { return "host_copy"; }
  std::string summary() const override { return "host to device and back, pinned memory"; }
  std::string math(const Shape&) const override { return "none"; }
  std::vector<Axis> axes() const override { return {{"direction", "to_device or to_host"}, {"bytes", "bytes of one copy"}}; }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> shapes;
    const auto add = [&](const char* direction, std::int64_t bytes) { shapes.push_back(Shape().set("direction", direction).set("bytes", bytes)); };
    for (const char* direction : {"to_device", "to_host"}) {
      if (grid == Grid::bench) break;
      add(direction, 4096);
      if (grid == Grid::sanitize) continue;
      for (const std::int64_t bytes : {64 << 10, 1 << 20, 64 << 20}) add(direction, bytes);
      if (grid == Grid::full)
        for (std::int64_t bytes = 4096; bytes <= 256 << 20; bytes *= 4) add(direction, bytes);
    }
    return unique(shapes);
  }
  Work work(const Shape& shape) const override {
    Work work;
    work.bytes_link = work.bytes_hbm = static_cast<double>(shape.number("bytes"));
    return work;
  }
};

}  // namespace

const Family& host_copy_family() {
  static const HostCopy family;
  return family;
}

}  // namespace rackcast::kernels
