#include "sim/spec/kv_transfer.hpp"

namespace rackcast {

const std::vector<Choice> kv_transfer_modes = {
    {"pull", "the decode engine fetches after prefill has ended"},
    {"push", "the prefill engine sends after prefill has ended"},
    {"push_layerwise", "the prefill engine sends a layer's rows when that layer is computed, into room that the decode engine holds since the prompt started"}};
const std::vector<Choice> kv_transports = {
    {"auto", "cuda_ipc inside an NVLink domain, ib between domains"},
    {"cuda_ipc", "NVLink, as NIXL posts it: 4 us a descriptor"},
    {"ib", "InfiniBand, 0.2 us a descriptor"},
    {"roce", "RDMA over Ethernet, 0.35 us a descriptor"},
    {"unnamed", "the transport of the report that compares pull and push and does not name it: 2.4 us a descriptor"}};
const std::vector<Choice> kv_postings = {
    {"auto", "pull: step; push: thread"},
    {"step", "on the engine's host before it launches the step: the step of every rank waits"},
    {"behind_launch", "on the engine's host after it has launched the step: only what outlasts the GPU's step is exposed"},
    {"thread", "by a thread of its own: no step waits, transfers of a GPU queue up"}};
const std::vector<Choice> kv_pieces = {
    {"block", "every block is a piece of its own: memory that has been in use"},
    {"run", "blocks that were computed in one go lie side by side: a fresh prompt is one piece, each prefix hit adds one"}};
const std::vector<Choice> first_tokens = {
    {"seeded", "the decode engine goes on from the prefill engine's first token"},
    {"recomputed", "the decode engine computes the last prompt token again: the first token comes out of its first step"}};

void fields(Visitor& v, KvTransferSpec& k) {
  v.choice("mode", k.mode, kv_transfer_modes, "who moves KV from prefill to decode, and when");
  v.choice("transport", k.transport, kv_transports, "what descriptors are posted to");
  v.choice("posting", k.posting, kv_postings, "whose time the posting of descriptors takes");
  v.rule("posting", k.mode == KvTransferMode::pull || k.posting == KvPosting::automatic || k.posting == KvPosting::thread,
         "step and behind_launch are for mode pull");
  v.automatic("control", k.control, "notification and dispatch of one hand-over; auto: the cost file's");
  v.automatic("post_per_descriptor", k.post_per_descriptor, "host time to post one descriptor; auto: the cost file's for the transport");
  v.automatic("execute_per_descriptor", k.execute_per_descriptor, "time that a descriptor adds to the transfer; auto: the cost file's");
  v.field("block", k.block, "tokens of a KV block: what one descriptor covers in each region").require(k.block.count > 0, "must be > 0");
  v.field("packed", k.packed, "all layers' rows of a block are one piece, instead of one a layer and kind of row");
  v.choice("pieces", k.pieces, kv_pieces, "what one descriptor can cover");
  v.choice("first_token", k.first_token, first_tokens, "where the first token comes from");
}

}  // namespace rackcast
