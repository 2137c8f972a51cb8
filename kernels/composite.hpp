// Families whose case is a list of other families' cases, launched one after the other in one graph. Every part has its own
// buffers and its own check (equal parts share both, on different weights while there are enough sets): what the composite adds is the measured whole, whose difference from the sum of its parts is
// the launch and dependency time that no part shows.
#pragma once
#include <string>
#include <vector>

#include "kernels/family.hpp"

namespace rackcast::kernels {

struct Part {
  std::string family;
  Shape shape;
};

class CompositeFamily : public Family {
 public:
  virtual std::vector<Part> parts(const Shape& shape) const = 0;  // in launch order
  std::string math(const Shape&) const override { return "fp8"; }
  Work work(const Shape& shape) const override;                   // the parts' sum
};

// What the two layer families share; V4-Flash or V4.1 (models of MODEL shapes: hidden, query rank, head count...).
struct LayerShapes {
  std::int64_t hidden, latent_in, query_rank, index_heads, keys_per_index, inter, experts;
  const char* kv_format;
};
LayerShapes layer_shapes(const std::string& model);
constexpr std::int64_t vocabulary = 129280;
// Rows are padded to 4: cuBLASLt's 128-block fp8 has no kernel for fewer.
Part dense_part(std::int64_t tokens, std::int64_t k, std::int64_t n, const char* math = "fp8_block", std::int64_t batch = 1);
Part small_part(const char* op, std::int64_t tokens, std::int64_t size);
// A layer that attends only to its window (drafting): query_tokens rows of one request side by side.
std::vector<Part> window_parts(const LayerShapes& layer, std::int64_t rows, std::int64_t query_tokens);
std::vector<Part> attention_parts(const LayerShapes& layer, std::int64_t tokens, std::int64_t context, bool indexed);

}  // namespace rackcast::kernels
