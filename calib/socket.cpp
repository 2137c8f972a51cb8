#include "calib/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/base/error.hpp"

namespace rackcast::calib {

namespace {

constexpr uint32_t frame_magic = 0x52434246;       // "RCBF"
constexpr uint64_t frame_limit_bytes = 1ULL << 30;  // a longer frame is not ours

struct FrameHead {
  uint32_t magic, kind;
  uint64_t at_bytes, body_bytes;
};

bool wait_for(int descriptor, short events, Deadline deadline) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd entry{descriptor, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min<long long>(left.count(), 1000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

}  // namespace

Deadline deadline_in(double seconds) {
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Socket::send_all(const std::string& bytes, Deadline deadline) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t sent = ::send(descriptor_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) done += static_cast<std::size_t>(sent);
    else if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
      if (!wait_for(descriptor_, POLLOUT, deadline)) return false;
    } else return false;
  }
  return true;
}

bool Socket::receive_all(char* to, std::size_t bytes, Deadline deadline) const {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::recv(descriptor_, to + done, bytes - done, MSG_DONTWAIT);
    if (got > 0) done += static_cast<std::size_t>(got);
    else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      if (!wait_for(descriptor_, POLLIN, deadline)) return false;
    } else return false;
  }
  return true;
}

Socket listen_on(int port, int backlog) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  RACKCAST_CHECK(socket.open(), "no socket");
  const int on = 1;
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::bind(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.descriptor(), backlog) != 0)
    throw UserError("cannot listen on port " + std::to_string(port) + ": " + std::strerror(errno));
  return socket;
}

int port_of(const Socket& listener) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  ::getsockname(listener.descriptor(), reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

std::optional<Socket> accept_until(const Socket& listener, Deadline deadline) {
  if (!wait_for(listener.descriptor(), POLLIN, deadline)) return std::nullopt;
  Socket socket(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.open()) return std::nullopt;
  const int on = 1;
  ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

std::optional<Socket> connect_to(const std::string& host, int port, double seconds) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return std::nullopt;
  std::optional<Socket> result;
  for (addrinfo* entry = found; entry != nullptr && !result; entry = entry->ai_next) {
    Socket socket(::socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.open()) continue;
    if (::connect(socket.descriptor(), entry->ai_addr, entry->ai_addrlen) != 0) {
      if (errno != EINPROGRESS || !wait_for(socket.descriptor(), POLLOUT, deadline_in(seconds))) continue;
      int error = 0;
      socklen_t length = sizeof error;
      ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &length);
      if (error != 0) continue;
    }
    const int on = 1;
    ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    result = std::move(socket);
  }
  ::freeaddrinfo(found);
  return result;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* interfaces = nullptr;
  if (::getifaddrs(&interfaces) == 0) {
    for (ifaddrs* i = interfaces; i != nullptr; i = i->ifa_next) {
      if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
      char text[INET_ADDRSTRLEN];
      ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr, text, sizeof text);
      if (std::string(text).rfind("127.", 0) != 0) addresses.emplace_back(text);
    }
    ::freeifaddrs(interfaces);
  }
  addresses.emplace_back("127.0.0.1");
  return addresses;
}

std::string own_host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

bool send_frame(const Socket& socket, const Frame& frame, Deadline deadline) {
  const FrameHead head{frame_magic, static_cast<uint32_t>(frame.kind), frame.at.size(), frame.body.size()};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  return socket.send_all(bytes + frame.at + frame.body, deadline);
}

std::optional<Frame> receive_frame(const Socket& socket, Deadline deadline) {
  FrameHead head{};
  if (!socket.receive_all(reinterpret_cast<char*>(&head), sizeof head, deadline)) return std::nullopt;
  if (head.magic != frame_magic || head.at_bytes > frame_limit_bytes || head.body_bytes > frame_limit_bytes) return std::nullopt;
  Frame frame;
  frame.kind = static_cast<Frame::Kind>(head.kind);
  frame.at.resize(head.at_bytes);
  frame.body.resize(head.body_bytes);
  if (!socket.receive_all(frame.at.data(), frame.at.size(), deadline)) return std::nullopt;
  if (!socket.receive_all(frame.body.data(), frame.body.size(), deadline)) return std::nullopt;
  return frame;
}

}  // namespace rackcast::calib
