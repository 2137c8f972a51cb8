#include "calib/exchange.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>

#include <fmt/format.h>

namespace rackcast::calib {

std::string broadcast(Exchange& exchange, const std::string& at, const std::string& from_rank_0) {
  return exchange.gather(at, exchange.rank() == 0 ? from_rank_0 : std::string()).front();
}

void barrier(Exchange& exchange, const std::string& at, double patience_s) { exchange.gather(at, {}, patience_s); }

std::vector<double> max_over_ranks(Exchange& exchange, const std::string& at, const std::vector<double>& mine) {
  std::string bytes(mine.size() * sizeof(double), '\0');
  std::memcpy(bytes.data(), mine.data(), bytes.size());
  std::vector<double> largest = mine;
  for (const std::string& other : exchange.gather(at, bytes)) {
    RACKCAST_CHECK(other.size() == bytes.size(), "ranks took different numbers of samples at " + at);
    for (std::size_t i = 0; i < largest.size(); ++i) {
      double value = 0;
      std::memcpy(&value, other.data() + i * sizeof value, sizeof value);
      largest[i] = std::max(largest[i], value);
    }
  }
  return largest;
}

bool all_true(Exchange& exchange, const std::string& at, bool mine) {
  const std::vector<std::string> all = exchange.gather(at, mine ? "1" : "0");
  return std::all_of(all.begin(), all.end(), [](const std::string& s) { return s == "1"; });
}

namespace {

class Alone final : public Exchange {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 1; }
  std::vector<std::string> gather(const std::string&, const std::string& mine, double) override { return {mine}; }
  std::unique_ptr<Exchange> first(int) override { return alone(); }
  void fail(const std::string&) noexcept override {}
};

// One round after another; the last rank to come hands out the result. Groups of the first n ranks share the failure.
struct Group {
  explicit Group(std::size_t ranks) : slots(ranks), labels(ranks) {}
  std::vector<std::string> slots, labels, result;
  std::size_t here = 0;
  std::uint64_t round = 0;
};
struct Meeting {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<int, Group> groups;  // by number of ranks
  std::string failure;
};

class BetweenThreads final : public Exchange {
 public:
  BetweenThreads(std::shared_ptr<Meeting> meeting, int rank, int ranks, const ExchangeLimits& limits)
      : meeting_(std::move(meeting)), rank_(rank), ranks_(ranks), limits_(limits) {}
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  std::vector<std::string> gather(const std::string& at, const std::string& mine, double patience_s) override {
    std::unique_lock lock(meeting_->mutex);
    throw_if_failed();
    Group& group = meeting_->groups.try_emplace(ranks_, static_cast<std::size_t>(ranks_)).first->second;
    const std::uint64_t round = group.round;
    const double limit_s = patience_s > 0 ? patience_s : limits_.answer_s;
    group.slots[static_cast<std::size_t>(rank_)] = mine;
    group.labels[static_cast<std::size_t>(rank_)] = at;
    if (++group.here == group.slots.size()) finish_round(group, at);
    else if (!meeting_->changed.wait_for(lock, std::chrono::duration<double>(limit_s),
                                         [&] { return group.round != round || !meeting_->failure.empty(); }))
      meeting_->failure = missing(group, at, limit_s);
    meeting_->changed.notify_all();
    throw_if_failed();
    return group.result;
  }
  std::unique_ptr<Exchange> first(int n) override {
    if (rank_ >= n) return nullptr;
    if (n == 1) return alone();
    return std::make_unique<BetweenThreads>(meeting_, rank_, n, limits_);
  }
  void fail(const std::string& reason) noexcept override {
    const std::lock_guard lock(meeting_->mutex);
    if (meeting_->failure.empty()) meeting_->failure = "rank " + std::to_string(rank_) + " stopped: " + reason;
    meeting_->changed.notify_all();
  }
  void poll() override {
    const std::lock_guard lock(meeting_->mutex);
    throw_if_failed();
  }

 private:
  void throw_if_failed() const {
    if (!meeting_->failure.empty()) throw PeerLost(meeting_->failure);
  }
  void finish_round(Group& group, const std::string& at) {
    for (std::size_t r = 0; r < group.labels.size(); ++r)
      if (group.labels[r] != at) meeting_->failure = fmt::format("rank {} is at '{}', rank {} at '{}'", rank_, at, r, group.labels[r]);
    group.result = group.slots;
    group.labels.assign(group.labels.size(), {});
    group.here = 0;
    ++group.round;
  }
  static std::string missing(const Group& group, const std::string& at, double limit_s) {
    std::string who;
    for (std::size_t r = 0; r < group.labels.size(); ++r)
      if (group.labels[r].empty()) who += (who.empty() ? "" : ", ") + std::to_string(r);
    return fmt::format("rank {} did not come to '{}' within {} s", who, at, limit_s);
  }
  std::shared_ptr<Meeting> meeting_;
  int rank_, ranks_;
  ExchangeLimits limits_;
};

}  // namespace

std::unique_ptr<Exchange> alone() { return std::make_unique<Alone>(); }

std::vector<std::unique_ptr<Exchange>> between_threads(int ranks, const ExchangeLimits& limits) {
  // Shared: the meeting ends with the last of the ranks that use it, and none of them is known to be that one.
  auto meeting = std::make_shared<Meeting>();
  std::vector<std::unique_ptr<Exchange>> all;
  all.reserve(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) all.push_back(std::make_unique<BetweenThreads>(meeting, r, ranks, limits));
  return all;
}

}  // namespace rackcast::calib
