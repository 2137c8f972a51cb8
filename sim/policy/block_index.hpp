// A hash map from (play, block id) to a small number: open addressing, linear probing, backward-shift erase, so that it
// never degrades however long a run is. Nothing iterates over it: its order can reach no result.
#pragma once
#include <cstdint>
#include <vector>

namespace rackcast {

class BlockIndex {
 public:
  static constexpr std::uint32_t none = 0xffffffffU;

  BlockIndex() : slots_(64) {}

  std::uint32_t find(std::uint32_t play, std::uint32_t block) const {
    const std::uint64_t key = key_of(play, block);
    for (std::size_t i = home(key);; i = (i + 1) & mask()) {
      if (slots_[i].value == none) return none;
      if (slots_[i].key == key) return slots_[i].value;
    }
  }

  void prefetch(std::uint32_t play, std::uint32_t block) const { __builtin_prefetch(&slots_[home(key_of(play, block))]); }

  void insert(std::uint32_t play, std::uint32_t block, std::uint32_t value) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    place(key_of(play, block), value);
    ++size_;
  }

  void erase(std::uint32_t play, std::uint32_t block) {
    const std::uint64_t key = key_of(play, block);
    std::size_t hole = home(key);
    while (slots_[hole].key != key || slots_[hole].value == none) {
      if (slots_[hole].value == none) return;
      hole = (hole + 1) & mask();
    }
    for (std::size_t i = (hole + 1) & mask(); slots_[i].value != none; i = (i + 1) & mask()) {
      const std::size_t wanted = home(slots_[i].key);
      if (((i - wanted) & mask()) < ((i - hole) & mask())) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole].value = none;
    --size_;
  }

  std::size_t size() const { return size_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t value = none;
  };

  static std::uint64_t key_of(std::uint32_t play, std::uint32_t block) {
    return (static_cast<std::uint64_t>(play) << 32) | block;
  }
  std::size_t mask() const { return slots_.size() - 1; }
  std::size_t home(std::uint64_t key) const {
    key ^= key >> 29;
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15ULL) >> 20) & mask();  // Fibonacci hashing
  }
  void place(std::uint64_t key, std::uint32_t value) {
    std::size_t i = home(key);
    while (slots_[i].value != none) i = (i + 1) & mask();
    slots_[i] = {key, value};
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.value != none) place(slot.key, slot.value);
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace rackcast
