#include "calib/exchange_tcp.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cstring>

#include <fmt/format.h>

namespace rackcast::calib {

namespace {

void append(std::string& to, const std::string& part) {
  const uint64_t length = part.size();
  to.append(reinterpret_cast<const char*>(&length), sizeof length);
  to += part;
}

std::vector<std::string> split(const std::string& bytes, std::size_t parts) {
  std::vector<std::string> out;
  std::size_t at = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    uint64_t length = 0;
    RACKCAST_CHECK(at + sizeof length <= bytes.size(), "short message between ranks");
    std::memcpy(&length, bytes.data() + at, sizeof length);
    at += sizeof length;
    RACKCAST_CHECK(length <= bytes.size() - at, "short message between ranks");
    out.push_back(bytes.substr(at, length));
    at += length;
  }
  return out;
}

enum class Peek { nothing, closed, data, failure };
Peek peek(const Socket& socket) {
  uint32_t head[2] = {};  // magic and kind
  const ssize_t got = ::recv(socket.descriptor(), head, sizeof head, MSG_PEEK | MSG_DONTWAIT);
  if (got == 0) return Peek::closed;
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Peek::nothing : Peek::closed;
  if (got < static_cast<ssize_t>(sizeof head)) return Peek::nothing;
  return head[1] == static_cast<uint32_t>(Frame::Kind::failure) ? Peek::failure : Peek::data;
}

class OverTcp final : public Exchange {
 public:
  OverTcp(int rank, int ranks, std::shared_ptr<std::vector<Socket>> sockets, const ExchangeLimits& limits)
      : rank_(rank), ranks_(ranks), sockets_(std::move(sockets)), limits_(limits) {}
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::vector<std::string> gather(const std::string& at, const std::string& mine, double patience_s) override {
    const double limit_s = patience_s > 0 ? patience_s : limits_.answer_s;
    return rank_ == 0 ? gather_as_first(at, mine, limit_s) : gather_as_other(at, mine, limit_s);
  }
  std::unique_ptr<Exchange> first(int n) override {
    if (rank_ >= n) return nullptr;
    return std::make_unique<OverTcp>(rank_, n, sockets_, limits_);
  }
  void fail(const std::string& reason) noexcept override {
    try {
      tell_others(fmt::format("rank {} stopped: {}", rank_, reason));
    } catch (...) {  // NOLINT(bugprone-empty-catch): the closed socket says the same with fewer words
    }
  }
  void poll() override { poll_from(0); }

 private:
  std::vector<std::string> gather_as_first(const std::string& at, const std::string& mine, double limit_s);
  std::vector<std::string> gather_as_other(const std::string& at, const std::string& mine, double limit_s);
  std::string take_from(std::size_t peer, const std::string& at, std::string& body);
  void poll_from(std::size_t first);
  void tell_others(const std::string& why) {
    for (const Socket& socket : *sockets_)
      if (socket.open()) send_frame(socket, {Frame::Kind::failure, {}, why}, deadline_in(1));
  }
  [[noreturn]] void give_up(const std::string& why) {
    if (rank_ == 0) tell_others(why);
    throw PeerLost(why);
  }
  int rank_, ranks_;
  std::shared_ptr<std::vector<Socket>> sockets_;  // of all ranks; groups of the first few look at the same ones
  ExchangeLimits limits_;
};

// Why that rank's part is no good; empty when it is.
std::string OverTcp::take_from(std::size_t peer, const std::string& at, std::string& body) {
  const auto frame = receive_frame((*sockets_)[peer], deadline_in(limits_.answer_s));
  if (!frame) return fmt::format("rank {} is gone, at '{}'", peer, at);
  if (frame->kind == Frame::Kind::failure) return frame->body;
  if (frame->at != at) return fmt::format("rank {} is at '{}', rank 0 at '{}'", peer, frame->at, at);
  body = frame->body;
  return {};
}

std::vector<std::string> OverTcp::gather_as_first(const std::string& at, const std::string& mine, double limit_s) {
  std::vector<std::string> parts(static_cast<std::size_t>(ranks_));
  std::vector<bool> have(parts.size(), false);
  parts[0] = mine;
  have[0] = true;
  std::size_t missing = parts.size() - 1;
  const Deadline deadline = deadline_in(limit_s);
  while (missing > 0) {
    std::vector<pollfd> waiting;
    std::vector<std::size_t> who;
    for (std::size_t r = 1; r < parts.size(); ++r)
      if (!have[r]) {
        waiting.push_back({(*sockets_)[r].descriptor(), POLLIN, 0});
        who.push_back(r);
      }
    if (std::chrono::steady_clock::now() > deadline) {
      std::string names;
      for (std::size_t r : who) names += (names.empty() ? "" : ", ") + std::to_string(r);
      give_up(fmt::format("rank {} did not come to '{}' within {} s", names, at, limit_s));
    }
    ::poll(waiting.data(), waiting.size(), 100);
    if (ranks_ < static_cast<int>(sockets_->size())) poll_from(static_cast<std::size_t>(ranks_));
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents == 0) continue;
      const std::string problem = take_from(who[i], at, parts[who[i]]);
      if (!problem.empty()) give_up(problem);
      have[who[i]] = true;
      --missing;
    }
  }
  std::string all;
  for (const std::string& part : parts) append(all, part);
  for (std::size_t r = 1; r < parts.size(); ++r)
    if (!send_frame((*sockets_)[r], {Frame::Kind::data, at, all}, deadline_in(limits_.answer_s)))
      give_up(fmt::format("rank {} is gone, at '{}'", r, at));
  return parts;
}

std::vector<std::string> OverTcp::gather_as_other(const std::string& at, const std::string& mine, double limit_s) {
  if (!send_frame((*sockets_)[0], {Frame::Kind::data, at, mine}, deadline_in(limits_.answer_s)))
    if (peek((*sockets_)[0]) != Peek::failure) throw PeerLost(fmt::format("rank 0 is gone, at '{}'", at));
  // A little longer than rank 0 waits, so that its better message arrives first.
  const double grace_s = 5;
  const Deadline deadline = deadline_in(limit_s + grace_s);
  const auto answer = receive_frame((*sockets_)[0], deadline);
  if (!answer && std::chrono::steady_clock::now() >= deadline)
    throw PeerLost(fmt::format("rank 0 did not answer at '{}' within {} s", at, limit_s + grace_s));
  if (!answer) throw PeerLost(fmt::format("rank 0 is gone, at '{}'", at));
  if (answer->kind == Frame::Kind::failure) throw PeerLost(answer->body);
  return split(answer->body, static_cast<std::size_t>(ranks_));
}

void OverTcp::poll_from(std::size_t first) {
  for (std::size_t i = first; i < sockets_->size(); ++i) {
    if (!(*sockets_)[i].open()) continue;
    const Peek seen = peek((*sockets_)[i]);
    if (seen == Peek::closed) give_up(fmt::format("rank {} is gone", i));
    if (seen == Peek::failure) {
      const auto frame = receive_frame((*sockets_)[i], deadline_in(1));
      give_up(frame ? frame->body : fmt::format("rank {} is gone", i));
    }
  }
}

}  // namespace

std::unique_ptr<Exchange> over_tcp(int rank, int ranks, std::vector<Socket> sockets, const ExchangeLimits& limits) {
  return std::make_unique<OverTcp>(rank, ranks, std::make_shared<std::vector<Socket>>(std::move(sockets)), limits);
}

}  // namespace rackcast::calib
