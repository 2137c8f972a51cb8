#include "kernels/kv_push.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/draws.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {

BlockPlaces draw_places(int64_t block_bytes, int64_t blocks, int64_t buffer_bytes_max, uint64_t seed) {
  RACKCAST_CHECK(block_bytes * blocks <= buffer_bytes_max, "blocks do not fit the buffer");
  const int64_t places = std::min(2 * blocks, buffer_bytes_max / block_bytes);
  std::vector<int64_t> order(static_cast<std::size_t>(places));
  std::iota(order.begin(), order.end(), int64_t{0});
  Draws draws(seed);
  for (std::size_t i = 0; i < static_cast<std::size_t>(blocks); ++i) std::swap(order[i], order[i + draws.below(order.size() - i)]);
  BlockPlaces out;
  out.buffer_bytes = places * block_bytes;
  for (std::size_t i = 0; i < static_cast<std::size_t>(blocks); ++i) out.offset.push_back(order[i] * block_bytes);
  return out;
}

namespace {

constexpr int64_t kib = 1024;
constexpr int64_t mib = 1024 * kib;
constexpr int64_t most_bytes_peer = 1024 * mib;  // of one transfer
constexpr int64_t most_bytes_host = 256 * mib;   // pinned memory takes long to get

Shape shape_of(const char* path, const char* direction, int64_t bytes, int64_t blocks) {
  Shape s;
  s.set("path", path).set("direction", direction).set("bytes", bytes).set("blocks", blocks);
  return s;
}

class KvPush final : public Family {
 public:
  std::string name() const override { return "kv_push"; }
  std::string summary() const override { return "KV blocks between GPUs and to host memory: copies, batched copies, a kernel, staging"; }
  std::string math(const Shape&) const override { return "none"; }
  std::vector<Axis> axes() const override {
    return {{"path", "copy: a call a block; batch: cudaMemcpyBatchAsync; kernel: gather/scatter; staged: pack, one copy, unpack"},
            {"direction", "push, pull: rank 0 to rank 1; to_host, from_host: pinned memory; local: within this GPU"},
            {"bytes", "bytes of a block"},
            {"blocks", "blocks of a transfer"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> out;
    std::vector<int64_t> bytes = {4 * kib, 45 * kib, 256 * kib, 16 * mib};
    std::vector<int64_t> blocks = {1, 101, 1000, 10000};
    if (grid == Grid::full) {
      bytes = {kib / 2, 4 * kib, 16 * kib, 45 * kib, 256 * kib, mib, 16 * mib};
      blocks = {1, 16, 101, 1000, 10000, 100000};
    }
    if (grid == Grid::sanitize) {
      bytes = {kib / 2, 45 * kib};
      blocks = {3};
    }
    for (const char* direction : {"push", "pull", "local", "to_host", "from_host"})
      for (const char* path : {"copy", "batch", "kernel", "staged"})
        for (const int64_t b : bytes)
          for (const int64_t n : blocks)
            if (b * n <= most_bytes(direction)) out.push_back(shape_of(path, direction, b, n));
    if (grid != Grid::sanitize) {
      for (const char* direction : {"push", "pull", "local"}) {
        for (const char* path : {"copy", "kernel"}) out.push_back(shape_of(path, direction, most_bytes_peer / 2, 1));
        for (const char* path : {"copy", "batch", "kernel", "staged"}) out.push_back(shape_of(path, direction, 256 * kib, 4000));
      }
    }
    return unique(std::move(out));
  }
  Work work(const Shape& shape) const override {
    const double bytes = static_cast<double>(shape.number("bytes") * shape.number("blocks"));
    const double passes = shape.text("path") == "staged" ? 3 : 1;  // pack, copy and unpack each read and write
    Work work;
    const bool local = shape.text("direction") == "local";
    work.bytes_hbm = local ? 2 * bytes * passes : bytes;
    work.bytes_link = local ? 0 : bytes;
    work.touched = static_cast<double>(shape.number("blocks"));
    return work;
  }
  std::vector<Bar> bars() const override {
    // 70% of what a copy reaches on the H200 (4.3 TB/s, bytes read and written).
    return {{shape_of("kernel", "local", 256 * kib, 4000), "cold", Quantity::hbm_gb_s, 0.7 * 4300, 3600, ""}};
  }

 private:
  static int64_t most_bytes(const std::string& direction) {
    return direction == "to_host" || direction == "from_host" ? most_bytes_host : most_bytes_peer;
  }
};

}  // namespace

const Family& kv_push_family() {
  static const KvPush family;
  return family;
}

}  // namespace rackcast::kernels
