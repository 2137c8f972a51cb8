// How ranks that are separate processes find each other: rank 0 listens, the others learn its address through a file that
// all can see, through MASTER_ADDR and MASTER_PORT, through a given tcp address, or through MPI when built with it.
#pragma once
#include <memory>
#include <string>

#include "calib/exchange.hpp"
#include "calib/world.hpp"

namespace rackcast::calib {

struct RendezvousOptions {
  std::string where;         // tcp://host:port, file:///path, mpi; empty: see choose_rendezvous
  std::string default_file;  // used when nothing else says where
  ExchangeLimits limits;
};

// RACKCAST_RENDEZVOUS, else MASTER_ADDR:MASTER_PORT (one port higher under torchrun, whose agent owns that one), else
// MPI where it is built in and mpirun started us, else the default file.
std::string choose_rendezvous(const WorldPlace& place, const Environment& environment, const std::string& default_file);

// Every rank calls it once; returns when all are connected. PeerLost when they are not within limits.connect_s.
std::unique_ptr<Exchange> connect_world(const WorldPlace& place, const RendezvousOptions& options);

bool built_with_mpi();
// Rank 0's text on every rank, over MPI_COMM_WORLD. UserError when MPI disagrees with `place` on who is who.
std::string broadcast_over_mpi(const WorldPlace& place, const std::string& from_rank_0);

}  // namespace rackcast::calib
