// Exchange over TCP, a star around rank 0: 72 ranks and small messages need no better.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "calib/exchange.hpp"
#include "calib/socket.hpp"

namespace rackcast::calib {

// Rank 0: sockets[r] leads to rank r, sockets[0] is closed. Others: sockets[0] leads to rank 0 and is the only one.
std::unique_ptr<Exchange> over_tcp(int rank, int ranks, std::vector<Socket> sockets, const ExchangeLimits& limits);

}  // namespace rackcast::calib
