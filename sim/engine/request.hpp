// A request on its way through the rack, the arena that all of them live in, and lists of them. Requests are named by
// their index in the arena; references stay valid while others come and go.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/policy/kv_cache.hpp"
#include "sim/trace/load.hpp"

namespace rackcast {

using RequestId = std::uint32_t;
constexpr RequestId no_request = 0xffffffffU;
constexpr double not_yet_s = -1.0;

enum class RequestState : std::uint8_t { waiting, loading, prefilling, prompt_done, handing_over, joining, decoding, stranded, at_door };

struct Request {
  LoadRequest ask;
  double arrival_s = 0;
  double admitted_s = 0, prompt_done_s = 0;  // first time each
  double first_token_s = not_yet_s;
  RequestState state = RequestState::waiting;
  // Where it is: engine and DP rank of the prompt, then of the answer.
  std::uint32_t prefill_engine = 0, prefill_rank = 0;
  std::uint32_t decode_engine = 0, decode_rank = 0;
  bool alive = false;                   // the slot is in use
  bool admitted = false;                // its cache hits are known
  std::uint32_t life = 0, hand = 0;     // of the request, and of its way to a decode engine: moves of earlier ones are not its own
  std::uint32_t retries = 0;            // times that it lost its engine
  bool decode_reserved = false;         // a decode rank holds room for it
  bool sends_layers = false;            // its KV leaves while it is computed
  bool seeded = true;                   // the prefill engine's first token counts
  std::uint32_t parts_under_way = 0;
  double reserved_s = 0;
  // The prompt. After a preemption it also holds the answer so far.
  std::uint32_t prompt_tokens = 0;
  std::uint32_t computed_tokens = 0;    // of the prompt, in KV: found or computed (or scheduled in this iteration)
  std::uint32_t hit_gpu_tokens = 0, hit_host_tokens = 0;  // at the first admission
  std::uint64_t scheduled_tokens = 0;   // prompt tokens computed so far, again after a preemption
  double computed_s = 0;                // when its prompt was done
  double queued_estimate = 0;           // what the router's load view holds for it while it waits
  KvCache::Held held, host_held;
  std::int64_t private_tokens = 0;      // KV space of its own on the rank where it is
  std::int64_t decode_private_tokens = 0;  // the same on the decode rank, from reservation on
  // The answer.
  std::uint32_t answer_tokens = 0;      // that will be given
  std::uint32_t tokens_left = 0;        // of them
  std::uint32_t tokens_from_prefill = 0;
  std::uint64_t join_step = 0, finish_step = 0;
  double tokens_per_step = 0;           // tokens_left at joining / steps drawn
  std::uint32_t preemptions = 0;
  // Links of the lists that it can be in: one of waiting, prefilling or a finish bucket; and the rank's running list.
  RequestId previous = no_request, next = no_request;
  RequestId older = no_request, younger = no_request;
};

class RequestArena {
 public:
  Request& operator[](RequestId id) { return pages_[id >> page_bits][id & (page_size - 1)]; }
  const Request& operator[](RequestId id) const { return pages_[id >> page_bits][id & (page_size - 1)]; }

  RequestId add() {
    if (free_.empty()) {
      const auto first = static_cast<RequestId>(pages_.size() << page_bits);
      pages_.push_back(std::make_unique<Request[]>(page_size));
      for (RequestId i = page_size; i-- > 0;) free_.push_back(first + i);
    }
    const RequestId id = free_.back();
    free_.pop_back();
    (*this)[id] = Request{};
    (*this)[id].alive = true;
    ++live_;
    return id;
  }

  void remove(RequestId id) {
    (*this)[id].alive = false;
    free_.push_back(id);
    --live_;
  }

  std::size_t live() const { return live_; }
  std::size_t capacity() const { return pages_.size() << page_bits; }

 private:
  static constexpr unsigned page_bits = 8;
  static constexpr RequestId page_size = 1U << page_bits;
  std::vector<std::unique_ptr<Request[]>> pages_;
  std::vector<RequestId> free_;
  std::size_t live_ = 0;
};

// First in, first out, through Request::previous and next.
struct RequestQueue {
  RequestId head = no_request, tail = no_request;
  std::uint32_t count = 0;

  bool empty() const { return head == no_request; }
  void push_back(RequestArena& arena, RequestId id) {
    Request& request = arena[id];
    request.previous = tail;
    request.next = no_request;
    (tail == no_request ? head : arena[tail].next) = id;
    tail = id;
    ++count;
  }
  void push_front(RequestArena& arena, RequestId id) {
    Request& request = arena[id];
    request.previous = no_request;
    request.next = head;
    (head == no_request ? tail : arena[head].previous) = id;
    head = id;
    ++count;
  }
  void erase(RequestArena& arena, RequestId id) {
    const Request& request = arena[id];
    (request.previous == no_request ? head : arena[request.previous].next) = request.next;
    (request.next == no_request ? tail : arena[request.next].previous) = request.previous;
    --count;
  }
};

}  // namespace rackcast
