#include "kernels/composite.hpp"

#include "sim/base/error.hpp"

namespace rackcast::kernels {

Work CompositeFamily::work(const Shape& shape) const {
  Work sum;
  for (const Part& part : parts(shape)) {
    const Family* family = find_family(part.family);
    RACKCAST_CHECK(family != nullptr, "no family " + part.family);
    const Work one = family->work(part.shape);
    sum.flop += one.flop;
    sum.flop_padded += one.flop_padded > 0 ? one.flop_padded : one.flop;
    sum.bytes_hbm += one.bytes_hbm;
    sum.bytes_link += one.bytes_link;
  }
  return sum;
}

LayerShapes layer_shapes(const std::string& model) {
  if (model == "v4-flash") return {4096, 1536, 1024, 64, 4, 2048, 256, "v4"};
  RACKCAST_CHECK(model == "v4.1-flash", "model " + model);
  return {5120, 1792, 1280, 32, 2, 2304, 384, "v41"};
}

// Decode batches are padded to 4 rows: cuBLASLt's 128-block fp8 has no kernel for fewer.
Part dense_part(std::int64_t tokens, std::int64_t k, std::int64_t n, const char* math, std::int64_t batch) {
  return {"dense", Shape().set("m", (tokens + 3) / 4 * 4).set("n", n).set("k", k).set("batch", batch).set("math", math)};
}
Part small_part(const char* op, std::int64_t tokens, std::int64_t size) {
  return {"small", Shape().set("op", op).set("tokens", tokens).set("size", size)};
}

std::vector<Part> attention_parts(const LayerShapes& layer, std::int64_t tokens, std::int64_t context, bool indexed) {
  std::vector<Part> parts;
  parts.push_back(small_part("mhc_pre", tokens, layer.hidden));
  parts.push_back(dense_part(tokens, layer.hidden, layer.latent_in));  // query rank and latent row together
  parts.push_back(small_part("insert", tokens, 512));
  if (indexed) {
    const std::int64_t keys = context / layer.keys_per_index;
    parts.push_back(dense_part(tokens, layer.hidden, 1024, "bf16"));   // compressor
    parts.push_back(dense_part(tokens, layer.query_rank, layer.index_heads * 128));
    parts.push_back(dense_part(tokens, layer.hidden, layer.index_heads, "bf16"));
    parts.push_back({"indexer", Shape().set("requests", tokens).set("query_tokens", 1).set("keys", keys).set("heads", layer.index_heads).set("form", "dense").set("format", "fp8")});
    parts.push_back({"topk", Shape().set("rows", tokens).set("scores", keys).set("k", 512).set("distribution", "gaussian").set("group", 1)});
  }
  parts.push_back(dense_part(tokens, layer.query_rank, 32768));
  parts.push_back({"sparse_attention", Shape().set("tokens", tokens).set("window", 128).set("selected", 512).set("format", layer.kv_format)
                                           .set("locality", "rows").set("query_tokens", 1).set("phase", "decode").set("lengths", "full")});
  parts.push_back(dense_part(tokens, 4096, 1024, "bf16", 8));          // eight groups of heads
  parts.push_back(dense_part(tokens, 8192, layer.hidden));
  parts.push_back(small_part("mhc_post", tokens, layer.hidden));
  return parts;
}

std::vector<Part> window_parts(const LayerShapes& layer, std::int64_t rows, std::int64_t query_tokens) {
  std::vector<Part> parts;
  parts.push_back(small_part("mhc_pre", rows, layer.hidden));
  parts.push_back(dense_part(rows, layer.hidden, layer.latent_in));
  parts.push_back(small_part("insert", rows, 512));
  parts.push_back(dense_part(rows, layer.query_rank, 32768));
  parts.push_back({"sparse_attention", Shape().set("tokens", rows).set("window", 128).set("selected", 0).set("format", layer.kv_format)
                                           .set("locality", "rows").set("query_tokens", query_tokens).set("phase", "decode").set("lengths", "full")});
  parts.push_back(dense_part(rows, 4096, 1024, "bf16", 8));
  parts.push_back(dense_part(rows, 8192, layer.hidden));
  parts.push_back(small_part("mhc_post", rows, layer.hidden));
  return parts;
}

}  // namespace rackcast::kernels
