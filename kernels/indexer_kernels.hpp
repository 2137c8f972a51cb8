// Implementations of the indexer, as launches; for indexer.cu and the composites.
#pragma once
#include <cstdint>

#include "kernels/indexer.hpp"
#include "kernels/launcher.hpp"

namespace rackcast::kernels {

struct IndexerParams {
  const std::uint8_t* q = nullptr;        // [requests][query_tokens][heads][128] e4m3
  const float* weights = nullptr;         // [requests][query_tokens][heads], the query's scale folded in
  const std::uint8_t* keys = nullptr;     // pages
  const std::int32_t* pages = nullptr;    // [requests][pages_per_request]
  const std::int32_t* blocks = nullptr;   // sparse: [requests * query_tokens][keys / 8], block numbers within the request
  float* logits = nullptr;                // [requests * query_tokens][keys]
  int requests = 0, query_tokens = 1, heads = 64;
  int key_count = 0;                      // dense: keys of a request; sparse: of a token, a multiple of 8
  int pages_per_request = 0;
  bool fp4 = false;                       // format of the keys
};

void indexer_portable(const IndexerParams& params, Stream stream);
void indexer_sm90(const IndexerParams& params, int sm_count, Stream stream);      // fp8 keys
void indexer_fp4_sm90(const IndexerParams& params, int sm_count, Stream stream);

}  // namespace rackcast::kernels
