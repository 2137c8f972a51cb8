#include "sim/policy/kv_cache.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/error.hpp"

namespace rackcast {

// Calls visit(segment, blocks of it that the path uses) along the resident prefix, up to `most` blocks. A segment may
// be longer than the run that leads into it; then the path leaves it there.
template <class Visit>
std::uint32_t KvCache::walk(std::uint32_t play, std::span<const HashRun> runs, std::uint32_t most, Visit&& visit) const {
  std::uint32_t matched = 0;
  std::uint32_t inside = no_segment, used = 0;  // the segment that the path is in, and how much of it is used
  for (const HashRun& run : runs) {
    std::uint32_t at = 0;
    const std::uint32_t length = std::min(run.count, most - matched);
    while (at < length) {
      const std::uint32_t id = run.first + at;
      const bool continues = inside != no_segment && used < segments_[inside].count && segments_[inside].first + used == id;
      if (!continues) {
        if (inside != no_segment) visit(inside, used);
        inside = index_.find(play, id);
        used = 0;
        if (inside == no_segment) return matched;
      }
      const std::uint32_t step = std::min(length - at, segments_[inside].count - used);
      used += step;
      at += step;
      matched += step;
    }
    if (matched == most) break;
  }
  if (inside != no_segment) visit(inside, used);
  return matched;
}

std::uint32_t KvCache::matched_blocks(std::uint32_t play, std::span<const HashRun> runs) const {
  return walk(play, runs, 0xffffffffU, [](std::uint32_t, std::uint32_t) {});
}

KvCache::Held KvCache::acquire(std::uint32_t play, std::span<const HashRun> runs, std::uint32_t most) {
  Held held;
  path_.clear();
  used_.clear();
  held.blocks = walk(play, runs, most, [&](std::uint32_t s, std::uint32_t used) {
    path_.push_back(s);
    used_.push_back(used);
  });
  if (path_.empty()) return held;
  held.segment = path_.back();
  // Where the path leaves a segment is a border from now on: at its end, and where it turns into another branch (a
  // segment can have grown past such a branch while nobody held the branch).
  for (std::size_t i = 0; i < path_.size(); ++i)
    if (used_[i] < segments_[path_[i]].count) split(path_[i], used_[i]);
  for (const std::uint32_t s : path_) add_reference(s);
  return held;
}

bool KvCache::reserve(std::int64_t tokens) {
  if (tokens > capacity_ - private_ - referenced_) return false;
  const std::int64_t excess = used_tokens() + tokens - capacity_;
  if (excess > 0) evict_tokens(excess);
  private_ += tokens;
  return true;
}

void KvCache::release_private(std::int64_t tokens) {
  private_ -= tokens;
  RACKCAST_CHECK(private_ >= 0, "more private KV space given back than was taken");
}

std::int64_t KvCache::append(std::uint32_t play, std::span<const HashRun> runs, std::uint32_t to,
                             std::uint32_t block_tokens, Held& held) {
  const std::uint32_t from = held.blocks;
  std::uint32_t before = 0;
  for (const HashRun& run : runs) {
    const std::uint32_t end = std::min(before + run.count, to);
    while (held.blocks >= before && held.blocks < end) {
      const std::uint32_t id = run.first + (held.blocks - before);
      std::uint32_t wanted = end - held.blocks;
      const std::uint32_t child = index_.find(play, id);
      if (child != no_segment) {
        if (segments_[child].count > wanted) split(child, wanted);
        wanted = segments_[child].count;
        add_reference(child);
        held.segment = child;
      } else {
        // No later block of the run can be resident either: a prefix outlives what hangs on it.
        Segment* parent = held.segment == no_segment ? nullptr : &segments_[held.segment];
        const bool mine = parent && parent->block_tokens == block_tokens && parent->play == play && parent->refs == 1 &&
                          parent->first + parent->count == id;
        const std::int64_t tokens = static_cast<std::int64_t>(wanted) * block_tokens;
        if (mine) {
          parent->count += wanted;
        } else {
          held.segment = new_segment(play, id, wanted, block_tokens);
          segments_[held.segment].refs = 1;
        }
        resident_ += tokens;
        referenced_ += tokens;
      }
      held.blocks += wanted;
    }
    before += run.count;
    if (held.blocks >= to) break;
  }
  const std::int64_t moved = static_cast<std::int64_t>(held.blocks - from) * block_tokens;
  private_ -= moved;
  RACKCAST_CHECK(private_ >= 0, "blocks became resident that had no private space");
  return moved;
}

void KvCache::release(std::uint32_t play, std::span<const HashRun> runs, const Held& held) {
  if (held.blocks == 0) return;
  path_.clear();
  const std::uint32_t found =
      walk(play, runs, held.blocks, [&](std::uint32_t s, std::uint32_t) { path_.push_back(s); });
  RACKCAST_CHECK(found == held.blocks, "a held block was evicted");
  for (std::size_t i = path_.size(); i-- > 0;) {  // the deepest becomes least recent
    Segment& segment = segments_[path_[i]];
    RACKCAST_CHECK(segment.refs > 0, "a reference was given back twice");
    if (--segment.refs > 0) continue;
    referenced_ -= tokens_of(segment);
    link_newest(path_[i]);
  }
  while (index_.size() > segment_limit_ && oldest_ != no_segment) evict_tokens(tokens_of(segments_[oldest_]));
}

bool KvCache::insert(std::uint32_t play, std::span<const HashRun> runs, std::uint32_t blocks, std::uint32_t block_tokens) {
  Held held = acquire(play, runs, blocks);
  const std::int64_t missing = static_cast<std::int64_t>(blocks - held.blocks) * block_tokens;
  const bool fits = reserve(missing);
  if (fits) release_private(missing - append(play, runs, blocks, block_tokens, held));
  release(play, runs, held);
  return fits;
}

void KvCache::leave(std::int64_t tokens) {
  tokens = std::min<std::int64_t>(tokens, std::numeric_limits<std::uint32_t>::max());  // a segment's size
  if (tokens <= 0 || tokens > capacity_ - private_ - referenced_) return;
  const std::int64_t excess = used_tokens() + tokens - capacity_;
  if (excess > 0) evict_tokens(excess);
  link_newest(new_segment(nobody, next_left_++, static_cast<std::uint32_t>(tokens), 1));
  resident_ += tokens;
}

void KvCache::add_reference(std::uint32_t s) {
  Segment& segment = segments_[s];
  if (segment.refs++ > 0) return;
  unlink(s);
  referenced_ += tokens_of(segment);
}

void KvCache::evict_tokens(std::int64_t tokens) {
  while (tokens > 0) {
    RACKCAST_CHECK(oldest_ != no_segment, "nothing left to evict");
    const std::uint32_t s = oldest_;
    Segment& segment = segments_[s];
    const std::int64_t blocks = std::min<std::int64_t>(segment.count, (tokens + segment.block_tokens - 1) / segment.block_tokens);
    const std::int64_t gone = blocks * segment.block_tokens;
    resident_ -= gone;
    evicted_ += gone;
    tokens -= gone;
    segment.count -= static_cast<std::uint32_t>(blocks);
    if (segment.count == 0) {
      unlink(s);
      free_segment(s);
    }
  }
}

std::uint32_t KvCache::new_segment(std::uint32_t play, std::uint32_t first, std::uint32_t count, std::uint32_t block_tokens) {
  std::uint32_t s;
  if (free_.empty()) {
    s = static_cast<std::uint32_t>(segments_.size());
    segments_.emplace_back();
  } else {
    s = free_.back();
    free_.pop_back();
  }
  segments_[s] = Segment{.play = play, .first = first, .count = count, .block_tokens = block_tokens};
  index_.insert(play, first, s);
  return s;
}

void KvCache::free_segment(std::uint32_t s) {
  index_.erase(segments_[s].play, segments_[s].first);
  segments_[s] = Segment{};
  free_.push_back(s);
}

std::uint32_t KvCache::split(std::uint32_t s, std::uint32_t count) {
  const Segment whole = segments_[s];
  const std::uint32_t rest = new_segment(whole.play, whole.first + count, whole.count - count, whole.block_tokens);
  segments_[s].count = count;
  segments_[rest].refs = whole.refs;
  if (whole.refs == 0) link_before(rest, s);
  return rest;
}

void KvCache::link_newest(std::uint32_t s) {
  segments_[s].older = newest_;
  segments_[s].newer = no_segment;
  (newest_ == no_segment ? oldest_ : segments_[newest_].newer) = s;
  newest_ = s;
}

void KvCache::link_before(std::uint32_t s, std::uint32_t next) {
  const std::uint32_t before = segments_[next].older;
  segments_[s].older = before;
  segments_[s].newer = next;
  segments_[next].older = s;
  (before == no_segment ? oldest_ : segments_[before].newer) = s;
}

void KvCache::unlink(std::uint32_t s) {
  const Segment& segment = segments_[s];
  (segment.older == no_segment ? oldest_ : segments_[segment.older].newer) = segment.newer;
  (segment.newer == no_segment ? newest_ : segments_[segment.newer].older) = segment.older;
}

void KvCache::check() const {
  std::int64_t resident = 0, referenced = 0;
  std::size_t live = 0;
  for (const Segment& segment : segments_) {
    if (segment.block_tokens == 0) continue;
    ++live;
    resident += tokens_of(segment);
    if (segment.refs > 0) referenced += tokens_of(segment);
  }
  RACKCAST_CHECK(live == index_.size(), "the index of a KV cache lost a segment");
  RACKCAST_CHECK(resident == resident_ && referenced == referenced_, "the sums of a KV cache are off");
  RACKCAST_CHECK(used_tokens() <= capacity_, "a KV cache holds more than its memory");
}

}  // namespace rackcast
