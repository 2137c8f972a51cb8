// The hand-over of a prompt's KV from its prefill engine to its decode engine: who moves it and when, over what, in how
// many pieces, and whose time the posting takes. Costs of -1 ("auto") come from the cost file's family `kv_transfer`.
#pragma once
#include <vector>

#include "sim/base/schema.hpp"

namespace rackcast {

enum class KvTransferMode { pull, push, push_layerwise };
enum class KvTransport { automatic, cuda_ipc, ib, roce, unnamed };
enum class KvPosting { automatic, step, behind_launch, thread };
enum class KvPieces { block, run };
enum class FirstToken { seeded, recomputed };
extern const std::vector<Choice> kv_transfer_modes, kv_transports, kv_postings, kv_pieces, first_tokens;

struct KvTransferSpec {
  KvTransferMode mode = KvTransferMode::push;
  KvTransport transport = KvTransport::automatic;
  KvPosting posting = KvPosting::automatic;
  Seconds control{-1};                // per hand-over: notification, dispatch
  Seconds post_per_descriptor{-1};
  Seconds execute_per_descriptor{-1};
  Tokens block{256};                  // tokens of one KV block
  bool packed = false;                // all layers' rows of a block lie in one piece
  KvPieces pieces = KvPieces::block;
  FirstToken first_token = FirstToken::seeded;
};
void fields(Visitor& v, KvTransferSpec& k);

}  // namespace rackcast
