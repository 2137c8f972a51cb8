// Decoding requests by the step in which they end. How many steps a request needs is drawn once, when it joins; so a
// step costs nothing for the requests that go on. Requests of one step end in the order in which they joined.
#pragma once
#include <vector>

#include "sim/engine/request.hpp"

namespace rackcast {

class FinishRing {
 public:
  FinishRing() : buckets_(256) {}

  // step must lie after the last one taken.
  void add(RequestArena& arena, RequestId id, std::uint64_t now_step, std::uint64_t step) {
    while (step - now_step >= buckets_.size()) grow(arena);
    arena[id].finish_step = step;
    buckets_[step & (buckets_.size() - 1)].push_back(arena, id);
  }

  void remove(RequestArena& arena, RequestId id) {
    buckets_[arena[id].finish_step & (buckets_.size() - 1)].erase(arena, id);
  }

  // The first request that ends in `step`, taken out; no_request when there is none left.
  RequestId take(RequestArena& arena, std::uint64_t step) {
    RequestQueue& bucket = buckets_[step & (buckets_.size() - 1)];
    const RequestId id = bucket.head;
    if (id != no_request) bucket.erase(arena, id);
    return id;
  }

 private:
  void grow(RequestArena& arena) {
    std::vector<RequestQueue> old(buckets_.size() * 2);
    old.swap(buckets_);
    for (const RequestQueue& bucket : old)  // all requests of a bucket end in the same step
      if (!bucket.empty()) buckets_[arena[bucket.head].finish_step & (buckets_.size() - 1)] = bucket;
  }

  std::vector<RequestQueue> buckets_;
};

}  // namespace rackcast
