// Dense products of the models' projections, shared experts and heads, through cuBLASLt.
#include "kernels/family.hpp"

namespace rackcast::kernels {
namespace {

struct Matrix {
  int k, n;
};

class Dense final : public Family {
 public:
  std::string name() const override { return "dense"; }
  std::string summary() const override { return "projections, shared expert and head through cuBLASLt, fastest algorithm by measurement"; }
  std::string math(const Shape& shape) const override { return shape.text("math"); }
  std::vector<Axis> axes() const override {
    return {{"m", "rows (tokens)"},
            {"n", "outputs"},
            {"k", "inputs"},
            {"batch", "products side by side (the eight groups of wo_a), else 1"},
            {"math", "bf16, fp8 (scales a tensor), fp8_block (1 x 128 and 128 x 128 scales; Hopper), mxfp8, nvfp4 (Blackwell)"}};
  }
  std::vector<Shape> grid(Grid grid) const override {
    std::vector<Shape> shapes;
    const auto add = [&](int m, Matrix matrix, const char* math, int batch = 1) {
      shapes.push_back(Shape().set("m", m).set("n", matrix.n).set("k", matrix.k).set("batch", batch).set("math", math));
    };
    const Matrix head{5120, 129280}, cube{8192, 8192}, wo_a{4096, 1024};
    if (grid == Grid::bench) {
      add(8192, cube, "fp8");
      add(8192, cube, "bf16");
      return shapes;
    }
    if (grid == Grid::sanitize) {
      for (const char* math : {"bf16", "fp8", "fp8_block", "mxfp8", "nvfp4"}) add(16, {512, 256}, math);
      add(16, {256, 128}, "bf16", 8);
      return shapes;
    }
    const bool full = grid == Grid::full;
    for (const char* math : {"bf16", "fp8_block", "mxfp8", "nvfp4"})
      for (const Matrix matrix : {Matrix{5120, 1792}, {1280, 32768}, {8192, 5120}})
        for (const int m : {1, 16, 64, 128, 512, 4096}) add(m, matrix, math);
    for (const int m : {16, 512, 4096, 8192}) add(m, m == 8192 ? cube : Matrix{8192, 5120}, "fp8");
    for (const int m : {1, 16, 96, 512}) add(m, head, "bf16");
    for (const int m : {16, 128}) add(m, wo_a, "bf16", 8);
    if (!full) return unique(shapes);
    for (const char* math : {"bf16", "fp8", "fp8_block", "mxfp8", "nvfp4"}) {
      for (const Matrix matrix : {Matrix{5120, 1792}, {1280, 32768}, {1280, 4096}, {8192, 5120}, {5120, 4608}, {2304, 5120}, {4096, 4096}, {1024, 32768}})
        for (const int m : {1, 32, 96, 256, 1024, 8192})
          if (static_cast<double>(m) * matrix.n <= 8192.0 * 8192) add(m, matrix, math);
    }
    for (const int m : {1, 16, 64, 96, 192, 384, 1024}) {
      add(m, head, "bf16");
      add(m, {4096, 129280}, "bf16");
      add(m, {5120, 384}, "bf16");
      add(m, wo_a, "bf16", 8);
      add(m, wo_a, "fp8", 8);
    }
    return unique(shapes);
  }
  Work work(const Shape& shape) const override {
    const auto m = static_cast<double>(shape.number("m")), n = static_cast<double>(shape.number("n")), k = static_cast<double>(shape.number("k"));
    const auto batch = static_cast<double>(shape.number("batch"));
    const std::string& math = shape.text("math");
    // Bytes of an operand's element with its share of a scale.
    const double x = math == "bf16" ? 2 : math == "fp8" ? 1 : math == "fp8_block" ? 1 + 4.0 / 128 : math == "mxfp8" ? 1 + 1.0 / 32 : 0.5 + 1.0 / 16;
    const double w = math == "fp8_block" ? 1 + 4.0 / (128 * 128) : x;
    Work work;
    work.flop = 2 * m * n * k * batch;
    work.bytes_hbm = batch * (n * k * w + m * k * x + 2 * m * n);
    return work;
  }
  std::vector<Bar> bars() const override {
    const std::vector<Shape> shapes = grid(Grid::bench);
    Bar fp8, bf16;
    fp8.shape = shapes[0];
    fp8.at_least = 1400;
    fp8.wanted = 1460;
    bf16.shape = shapes[1];
    bf16.at_least = 700;
    bf16.wanted = 790;
    bf16.published = "769-798 TFLOPS H200 (torch.matmul)";
    return {fp8, bf16};
  }
};

}  // namespace

const Family& dense_family() {
  static const Dense family;
  return family;
}

}  // namespace rackcast::kernels
