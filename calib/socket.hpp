// Blocking TCP with deadlines, as little as the exchange between ranks needs.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rackcast::calib {

using Deadline = std::chrono::steady_clock::time_point;
Deadline deadline_in(double seconds);

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  bool send_all(const std::string& bytes, Deadline deadline) const;
  bool receive_all(char* to, std::size_t bytes, Deadline deadline) const;  // false: closed, broken or too late

 private:
  int descriptor_ = -1;
};

Socket listen_on(int port, int backlog);  // 0: any free port. UserError when the port is taken
int port_of(const Socket& listener);
std::optional<Socket> accept_until(const Socket& listener, Deadline deadline);
std::optional<Socket> connect_to(const std::string& host, int port, double seconds);
std::vector<std::string> own_addresses();  // 127.0.0.1 last
std::string own_host_name();

// One message: what it is, where its sender stands, and the bytes.
struct Frame {
  enum class Kind : uint32_t { data = 1, failure = 2 };
  Kind kind = Kind::data;
  std::string at;
  std::string body;
};
bool send_frame(const Socket& socket, const Frame& frame, Deadline deadline);
std::optional<Frame> receive_frame(const Socket& socket, Deadline deadline);

}  // namespace rackcast::calib
