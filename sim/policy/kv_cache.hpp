// The KV memory of one rank (or of a host tier): a prefix cache with capacity, least-recently-used eviction and
// reference counts, and the private space of running requests. It works on runs of blocks, never on single blocks: a
// request's prompt is some three runs, and what is resident is a set of segments (consecutive ids that were always used
// together). A segment is split where paths fork and grows in place while only one request holds it.
// Order of use by a request: acquire, reserve, append (as chunks are scheduled), release + release_private.
// A prefix is never evicted before what hangs on it: the deepest segment of a path is the least recent one.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/base/hash_run.hpp"
#include "sim/policy/block_index.hpp"

namespace rackcast {

class KvCache {
 public:
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max() / 4;
  static constexpr std::uint32_t no_segment = BlockIndex::none;

  // `segment_limit` bounds the bookkeeping of an unlimited cache: beyond it the least recent segment goes.
  explicit KvCache(std::int64_t capacity_tokens, std::size_t segment_limit = std::size_t{1} << 24)
      : capacity_(capacity_tokens), segment_limit_(segment_limit) {}

  struct Held {
    std::uint32_t blocks = 0;               // leading blocks of the path that are held
    std::uint32_t segment = no_segment;     // hint: the segment that the last of them is in
  };

  // Leading blocks of the path that are resident.
  std::uint32_t matched_blocks(std::uint32_t play, std::span<const HashRun> runs) const;
  // matched_blocks will be asked soon: what it looks at first comes closer.
  void prefetch(std::uint32_t play, std::span<const HashRun> runs) const {
    if (!runs.empty()) index_.prefetch(play, runs.front().first);
  }
  // Takes references on the resident leading blocks, at most `most`.
  Held acquire(std::uint32_t play, std::span<const HashRun> runs, std::uint32_t most = 0xffffffffU);
  // Makes private space for `tokens`, evicting what nobody holds. False, and nothing changes, when they cannot fit.
  bool reserve(std::int64_t tokens);
  void release_private(std::int64_t tokens);
  // The holder computed blocks [held.blocks, to) into its private space: they become resident and held. Blocks that
  // another request made resident meanwhile are shared, and their private space is free again. Returns tokens moved out
  // of private space.
  std::int64_t append(std::uint32_t play, std::span<const HashRun> runs, std::uint32_t to, std::uint32_t block_tokens,
                      Held& held);
  // Drops the references of `held`; what nobody holds any more stays until evicted.
  void release(std::uint32_t play, std::span<const HashRun> runs, const Held& held);
  // acquire + reserve + append + release: a write-through copy. False when it does not fit.
  bool insert(std::uint32_t play, std::span<const HashRun> runs, std::uint32_t blocks, std::uint32_t block_tokens);

  // Space that nobody asks for again and that is evicted when it is the least recent: states that a request leaves behind.
  // Nothing happens when it does not fit.
  void leave(std::int64_t tokens);

  std::int64_t capacity_tokens() const { return capacity_; }
  std::int64_t used_tokens() const { return private_ + resident_; }        // what memory holds, evictable or not
  std::int64_t pinned_tokens() const { return private_ + referenced_; }    // what cannot be evicted
  std::int64_t private_tokens() const { return private_; }
  std::int64_t evicted_tokens() const { return evicted_; }
  std::size_t segments() const { return index_.size(); }
  void check() const;  // recomputes every sum from the segments; InternalError when one is off

 private:
  struct Segment {
    std::uint32_t play = 0, first = 0, count = 0, refs = 0;
    std::uint32_t older = no_segment, newer = no_segment;  // in the list of unreferenced segments
    std::uint32_t block_tokens = 0;                        // 0: a free entry
  };

  template <class Visit>
  std::uint32_t walk(std::uint32_t play, std::span<const HashRun> runs, std::uint32_t most, Visit&& visit) const;
  std::uint32_t new_segment(std::uint32_t play, std::uint32_t first, std::uint32_t count, std::uint32_t block_tokens);
  void free_segment(std::uint32_t s);
  std::uint32_t split(std::uint32_t s, std::uint32_t count);  // returns the second half
  void link_newest(std::uint32_t s);
  void link_before(std::uint32_t s, std::uint32_t next);
  void unlink(std::uint32_t s);
  void add_reference(std::uint32_t s);
  void evict_tokens(std::int64_t tokens);
  std::int64_t tokens_of(const Segment& s) const { return static_cast<std::int64_t>(s.count) * s.block_tokens; }

  static constexpr std::uint32_t nobody = 0xffffffffU;  // the play of what was left

  std::int64_t capacity_;
  std::size_t segment_limit_;
  std::uint32_t next_left_ = 0;
  std::int64_t private_ = 0, resident_ = 0, referenced_ = 0, evicted_ = 0;
  std::vector<Segment> segments_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> path_, used_;  // scratch
  BlockIndex index_;
  std::uint32_t oldest_ = no_segment, newest_ = no_segment;
};

}  // namespace rackcast
