#include "calib/rendezvous.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "calib/exchange_tcp.hpp"
#include "sim/base/error.hpp"
#include "sim/base/output.hpp"

namespace rackcast::calib {

namespace {

// What rank 0 tells the others. The token is new in every run, so an old file leads nowhere instead of astray.
struct Meeting {
  std::string token;
  int port = 0;
  std::string host;
  std::vector<std::string> addresses;
};

std::string to_text(const Meeting& meeting) {
  std::string text = fmt::format("rackcast-rendezvous-1 {} {} {}", meeting.token, meeting.port, meeting.host);
  for (const std::string& address : meeting.addresses) text += " " + address;
  return text + " end\n";
}

std::optional<Meeting> from_text(const std::string& text) {
  std::istringstream in(text);
  std::string magic;
  std::string word;
  Meeting meeting;
  if (!(in >> magic >> meeting.token >> meeting.port >> meeting.host) || magic != "rackcast-rendezvous-1") return std::nullopt;
  while (in >> word && word != "end") meeting.addresses.push_back(word);
  if (word != "end") return std::nullopt;  // still being written
  return meeting;
}

void write_file(const std::string& path, const std::string& text) {
  try {
    write_output_file(path, text);
  } catch (const UserError& error) {
    throw UserError(std::string(error.what()) + ": the file through which the ranks meet; give RACKCAST_RENDEZVOUS=tcp://host:port");
  }
}

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string new_token() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:x}", device(), device(), ::getpid());
}

constexpr double try_again_s = 0.05;
void pause() { std::this_thread::sleep_for(std::chrono::duration<double>(try_again_s)); }

// Rank 0: takes connections until every rank has shown the token.
std::vector<Socket> gather_peers(const WorldPlace& place, const Socket& listener, const std::string& token, double limit_s) {
  std::vector<Socket> peers(static_cast<std::size_t>(place.ranks));
  const Deadline deadline = deadline_in(limit_s);
  for (int here = 1; here < place.ranks;) {
    auto socket = accept_until(listener, deadline);
    if (!socket) {
      std::string missing;
      for (int r = 1; r < place.ranks; ++r)
        if (!peers[static_cast<std::size_t>(r)].open()) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", r);
      for (const Socket& peer : peers)
        if (peer.open()) send_frame(peer, {Frame::Kind::failure, {}, "rank " + missing + " did not connect"}, deadline_in(1));
      throw PeerLost(fmt::format("rank {} did not connect within {} s", missing, limit_s));
    }
    const auto hello = receive_frame(*socket, deadline_in(5));
    if (!hello || hello->at != token) continue;  // not one of us
    const int rank = std::atoi(hello->body.c_str());
    if (rank < 1 || rank >= place.ranks || peers[static_cast<std::size_t>(rank)].open()) {
      send_frame(*socket, {Frame::Kind::failure, {}, fmt::format("rank {} connected twice or is out of range", rank)}, deadline_in(1));
      continue;
    }
    if (!send_frame(*socket, {Frame::Kind::data, token, "welcome"}, deadline_in(5))) continue;
    peers[static_cast<std::size_t>(rank)] = std::move(*socket);
    ++here;
  }
  return peers;
}

// Another rank: tries what it knows of rank 0 until the time is over. `look` is asked again each time.
Socket find_first(const WorldPlace& place, const std::function<std::optional<Meeting>()>& look, double limit_s) {
  const Deadline deadline = deadline_in(limit_s);
  while (std::chrono::steady_clock::now() < deadline) {
    if (const auto meeting = look()) {
      std::vector<std::string> addresses = meeting->addresses;
      if (meeting->host == own_host_name()) std::reverse(addresses.begin(), addresses.end());  // 127.0.0.1 first
      for (const std::string& address : addresses) {
        auto socket = connect_to(address, meeting->port, 2);
        if (!socket || !send_frame(*socket, {Frame::Kind::data, meeting->token, std::to_string(place.rank)}, deadline_in(5))) continue;
        const auto answer = receive_frame(*socket, deadline_in(5));
        if (!answer) continue;
        if (answer->kind == Frame::Kind::failure) throw PeerLost(answer->body);
        return std::move(*socket);
      }
    }
    pause();
  }
  throw PeerLost(fmt::format("rank {} did not find rank 0 within {} s", place.rank, limit_s));
}

struct Address {
  std::string host;
  int port = 0;
};
Address tcp_address(const std::string& where) {
  const std::string rest = where.substr(6);
  const std::size_t colon = rest.rfind(':');
  const int port = colon == std::string::npos ? 0 : std::atoi(rest.c_str() + colon + 1);
  if (colon == 0 || port < 1 || port > 65535) throw UserError("rendezvous " + where + ": must be tcp://host:port");
  return {rest.substr(0, colon), port};
}

}  // namespace

std::string choose_rendezvous(const WorldPlace& place, const Environment& environment, const std::string& default_file) {
  if (const auto given = environment("RACKCAST_RENDEZVOUS")) return *given;
  const auto host = environment("MASTER_ADDR");
  const auto port = environment("MASTER_PORT");
  if (host && port) return fmt::format("tcp://{}:{}", *host, std::atoi(port->c_str()) + (place.launcher == "torchrun" ? 1 : 0));
  if (built_with_mpi() && place.launcher == "mpirun") return "mpi";
  return "file://" + default_file;
}

std::unique_ptr<Exchange> connect_world(const WorldPlace& place, const RendezvousOptions& options) {
  if (place.ranks == 1) return alone();
  const std::string& where = options.where;
  const bool tcp = where.rfind("tcp://", 0) == 0;
  const bool file = where.rfind("file://", 0) == 0;
  if (!tcp && !file && where != "mpi") throw UserError("rendezvous " + where + ": must be tcp://host:port, file:///path or mpi");
  if (where == "mpi" && !built_with_mpi()) throw UserError("rendezvous mpi: this rackcast-calib is built without MPI (RACKCAST_MPI=ON)");
  const std::string path = file ? where.substr(7) : std::string();
  const double limit_s = options.limits.connect_s;
  std::vector<Socket> sockets;
  if (place.rank == 0) {
    const Socket listener = listen_on(tcp ? tcp_address(where).port : 0, place.ranks);
    Meeting meeting{tcp ? "job-" + place.job : new_token(), port_of(listener), own_host_name(), own_addresses()};
    if (file) write_file(path, to_text(meeting));
    if (where == "mpi") broadcast_over_mpi(place, to_text(meeting));
    sockets = gather_peers(place, listener, meeting.token, limit_s);
    if (file) std::remove(path.c_str());
  } else {
    std::string told;
    if (where == "mpi") told = broadcast_over_mpi(place, {});
    sockets.push_back(find_first(place, [&]() -> std::optional<Meeting> {
      if (tcp) return Meeting{"job-" + place.job, tcp_address(where).port, {}, {tcp_address(where).host}};
      return from_text(file ? read_file(path) : told);
    }, limit_s));
  }
  return over_tcp(place.rank, place.ranks, std::move(sockets), options.limits);
}

}  // namespace rackcast::calib
