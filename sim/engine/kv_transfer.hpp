// How long a prompt's KV takes from its prefill engine to its decode engine: control, posting of descriptors, the flow
// over the links, and the execution of descriptors.
//   descriptors = regions * pieces + fixed_descriptors, pieces = ceil(tokens / block) or, where blocks that were computed
//   in one go lie side by side, their runs
//   bytes = tokens * bytes_per_token + fixed_bytes
// Who posts: pull: the decode GPU's host, in the engine's step (posting step or behind_launch) or by a thread; push: a
// thread of the prefill GPU. push_layerwise: every chunk of a prompt leaves in `groups` parts, as its layers are computed.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/cost/cost_range.hpp"
#include "sim/spec/kv_transfer.hpp"

namespace rackcast {

// One way to post descriptors: base + n * post on the host, then n * execute beside the flow of bytes.
struct TransportCost {
  double base_s = 0, post_s = 0, execute_s = 0;
  double posting_s(double descriptors) const { return descriptors > 0 ? base_s + descriptors * post_s : 0; }
};

struct KvTransferOptions {
  KvTransferMode mode = KvTransferMode::push;
  KvPosting posting = KvPosting::thread;     // never automatic
  KvPieces pieces = KvPieces::block;
  FirstToken first_token = FirstToken::seeded;
  double control_s = 0;
  TransportCost nvlink, nic;          // within an NVLink domain, and between two
  double nic_latency_s = 0;
  double block_tokens = 256;
  double bytes_per_token = 0;
  double fixed_bytes = 0;             // per request
  double regions = 1;                 // separate pieces of a block (layers with KV of their own, kinds of rows)
  double fixed_descriptors = 0;       // per request: windows, compressor states
  std::uint32_t groups = 1;           // parts that a chunk leaves in, layer by layer
  CostRange range;                    // of the batches of descriptors behind the costs; no spans: unknown
};

struct KvTransferTotals {
  std::uint64_t count = 0, ended = 0;
  double bytes = 0;
  double descriptors = 0, posting_s = 0;
  double time_s = 0;                  // of those that ended: from the computed prompt to the KV in place, waiting included
  double wait_s = 0;                  // of it, waiting for room in a decode engine
  double reserved_ahead_s = 0;        // layerwise: time that decode room was held before the prompt was computed
};

class KvTransfer {
 public:
  KvTransfer(const KvTransferOptions& options, std::uint32_t gpus) : options_(options), free_s_(gpus, 0.0) {}

  const TransportCost& cost(bool nvlink) const { return nvlink ? options_.nvlink : options_.nic; }
  double descriptors(double tokens, double runs) const {
    const double blocks = std::ceil(tokens / options_.block_tokens);
    return (options_.pieces == KvPieces::run ? std::min(runs, blocks) : blocks) * options_.regions;
  }
  double fixed_descriptors() const { return options_.fixed_descriptors; }
  double bytes(double tokens) const { return tokens * options_.bytes_per_token; }
  double fixed_bytes() const { return options_.fixed_bytes; }
  // When a posting thread of the GPU that may start at ready_s has posted. A thread posts one transfer after another.
  double posted_by_thread_s(double ready_s, std::uint32_t gpu, double posting_s) {
    double& free = free_s_[gpu];
    return free = std::max(ready_s, free) + posting_s;
  }

 private:
  KvTransferOptions options_;
  std::vector<double> free_s_;  // by GPU
};

// Bytes that are under way between two GPUs, or from host memory into one. Flows and events name it by its index.
enum class MoveKind : std::uint8_t { hand_over, part, host_load };
struct Move {
  MoveKind kind = MoveKind::hand_over;
  std::uint32_t request = 0;
  std::uint32_t life = 0;             // its request's hand, for host_load its life; another one: the move goes nowhere
  double bytes = 0, descriptors = 0, posting_s = 0;
  double start_s = 0;                 // of its flow
};

class Moves {
 public:
  std::uint32_t add(const Move& move) {
    if (free_.empty()) {
      moves_.push_back(move);
      return static_cast<std::uint32_t>(moves_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    moves_[slot] = move;
    return slot;
  }
  const Move& operator[](std::uint32_t slot) const { return moves_[slot]; }
  void started(std::uint32_t slot, double now_s) { moves_[slot].start_s = now_s; }
  void remove(std::uint32_t slot) { free_.push_back(slot); }
  std::size_t under_way() const { return moves_.size() - free_.size(); }

 private:
  std::vector<Move> moves_;
  std::vector<std::uint32_t> free_;
};

}  // namespace rackcast
