// The clock's future: a 4-ary heap of plain events, ordered by time, then kind (the phase within one instant), then the
// order in which they were added. Nothing is ever cancelled; an event that no longer applies is ignored by its handler.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

namespace rackcast {

enum class EventKind : std::uint8_t { rank_ready, layer_done, iteration_done, transfer_ready, transfer_posted, transfer_done, experts_ready, failure, failure_noticed, failure_over, window_end, sample };

struct Event {
  double time_s = 0;
  std::uint64_t order = 0;  // kind in the top 8 bits, sequence below
  std::uint32_t id = 0;
  EventKind kind() const { return static_cast<EventKind>(order >> 56); }
};

class EventQueue {
 public:
  double next_time_s() const { return heap_.empty() ? std::numeric_limits<double>::infinity() : heap_.front().time_s; }
  std::uint64_t added() const { return sequence_; }

  void add(double time_s, EventKind kind, std::uint32_t id) {
    Event event{time_s, (static_cast<std::uint64_t>(kind) << 56) | sequence_++, id};
    std::size_t hole = heap_.size();
    heap_.push_back(event);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (!before(event, heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = event;
  }

  Event take() {
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    const std::size_t size = heap_.size();
    if (size == 0) return first;
    std::size_t hole = 0;
    for (std::size_t child = 1; child < size; child = hole * 4 + 1) {
      std::size_t least = child;
      for (std::size_t k = child + 1; k < child + 4 && k < size; ++k)
        if (before(heap_[k], heap_[least])) least = k;
      if (!before(heap_[least], last)) break;
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = last;
    return first;
  }

 private:
  static bool before(const Event& a, const Event& b) {
    return a.time_s != b.time_s ? a.time_s < b.time_s : a.order < b.order;
  }

  std::vector<Event> heap_;
  std::uint64_t sequence_ = 0;
};

}  // namespace rackcast
