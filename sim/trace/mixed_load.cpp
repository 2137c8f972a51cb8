#include "sim/trace/mixed_load.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/error.hpp"

namespace rackcast {
namespace {

class MixedLoad final : public Load {
 public:
  explicit MixedLoad(std::vector<std::unique_ptr<Load>> parts) : parts_(std::move(parts)) {
    for (const auto& part : parts_) {
      first_lane_.push_back(lanes_);
      lanes_ += part->lanes();
    }
  }

  double next_time_s() const override {
    double next = never_s;
    for (const auto& part : parts_)
      if (!held(*part)) next = std::min(next, part->next_time_s());
    return next == never_s ? never_s : std::max(now_s_, next);  // a part that was held is due since before
  }

  void take_due(double now_s, std::vector<LoadRequest>& out) override {
    now_s_ = now_s;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (held(*parts_[p]) || parts_[p]->next_time_s() > now_s) continue;
      const std::size_t from = out.size();
      parts_[p]->take_due(now_s, out);
      for (std::size_t i = from; i < out.size(); ++i) name(p, out[i]);
    }
  }

  void finished(std::uint64_t id, double now_s) override {
    now_s_ = now_s;
    const Slot slot = slots_[static_cast<std::size_t>(id)];
    free_.push_back(id);
    parts_[slot.part]->finished(slot.id, now_s);
  }

  LoadPhase phase() const override {
    LoadPhase least = LoadPhase::measured;
    for (const auto& part : parts_) least = std::min(least, part->phase());
    return least;
  }
  bool exhausted() const override {
    return std::ranges::all_of(parts_, [](const auto& part) { return part->exhausted(); });
  }
  void stop() override {
    for (const auto& part : parts_) part->stop();
  }
  std::uint32_t lanes() const override { return lanes_; }

  void preload(const std::function<void(const LoadRequest&)>& warmed) override {
    for (std::size_t p = 0; p < parts_.size(); ++p)
      parts_[p]->preload([&](LoadRequest request) {
        place(p, request);
        warmed(request);
      });
  }

 private:
  struct Slot {
    std::size_t part = 0;
    std::uint64_t id = 0;  // of the part
  };

  bool held(const Load& part) const { return part.phase() == LoadPhase::measured && phase() != LoadPhase::measured; }

  // Lanes and plays of the parts must not meet: prefixes and homes go by them.
  void place(std::size_t part, LoadRequest& request) const {
    request.lane += first_lane_[part];
    request.play = static_cast<std::uint32_t>(request.play * parts_.size() + part);
  }

  void name(std::size_t part, LoadRequest& request) {
    place(part, request);
    if (free_.empty()) {
      free_.push_back(slots_.size());
      slots_.emplace_back();
    }
    const std::uint64_t id = free_.back();
    free_.pop_back();
    slots_[static_cast<std::size_t>(id)] = {part, request.id};
    request.id = id;
  }

  std::vector<std::unique_ptr<Load>> parts_;
  std::vector<std::uint32_t> first_lane_;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> free_;
  std::uint32_t lanes_ = 0;
  double now_s_ = 0;
};

}  // namespace

std::unique_ptr<Load> make_mixed_load(std::vector<std::unique_ptr<Load>> parts) {
  RACKCAST_CHECK(!parts.empty(), "a mix has parts");
  return std::make_unique<MixedLoad>(std::move(parts));
}

std::vector<std::uint32_t> lanes_by_share(std::uint32_t lanes, const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<std::uint32_t> counts;
  std::vector<std::pair<double, std::size_t>> rest;  // remainder, part
  std::uint32_t given = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double exact = lanes * shares[i] / sum;
    counts.push_back(static_cast<std::uint32_t>(exact));
    given += counts.back();
    rest.emplace_back(-(exact - std::floor(exact)), i);
  }
  std::stable_sort(rest.begin(), rest.end());
  for (std::size_t i = 0; given < lanes; ++i, ++given) ++counts[rest[i % rest.size()].second];
  // No part goes without while another has two.
  for (std::uint32_t& count : counts)
    if (auto most = std::ranges::max_element(counts); count == 0 && *most > 1) --*most, ++count;
  return counts;
}

}  // namespace rackcast
