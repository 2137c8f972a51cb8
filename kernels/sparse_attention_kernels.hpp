// The implementations of sparse attention, as launches. Only for sparse_attention.cu and the composites.
#pragma once
#include "kernels/launcher.hpp"
#include "kernels/sparse_attention.hpp"

namespace rackcast::kernels {

struct LatentParams;

// With params.splits > 1 partial results only: follow with combine_splits (latent_splits.hpp).
void sparse_attention_portable(const LatentParams& params, KvFormat format, Stream stream);
void sparse_attention_sm90(const LatentParams& params, KvFormat format, int sm_count, Stream stream);

}  // namespace rackcast::kernels
