// Splits the requests of one agent, as recorded, into chains: the agents that ran side by side without being declared.
// The evidence is the longest common prefix of block ids (AgentX v1.0 rules):
// - extend: a request continues the chain whose last request is wholly its prefix, has ended and has the same model;
// - fork: else it starts a chain, off the tail that it shares most with;
// - seam: a chain that forked off a tail which nothing else continues is that chain's own continuation (a rewritten
//   history), unless more than an hour passed and less than half of the tail is kept.
// A first request that shares nothing with the rest and is short (a title) stays with the main chain.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sim/trace/trace.hpp"

namespace rackcast {

constexpr double recorded_epsilon_s = 1e-6;  // times closer than this are equal

inline double api_time_of(const TraceRequest& request) { return request.api_time_s > 0 ? request.api_time_s : 0; }  // NaN: 0
inline double end_of(const TraceRequest& request) { return request.start_s + api_time_of(request); }

using Chain = std::vector<std::uint32_t>;  // request indices in order of start

// `requests` are indices into trace.requests, in file order. Chain 0 is the main one; the others follow by start.
std::vector<Chain> split_chains(const Trace& trace, std::span<const std::uint32_t> requests);

}  // namespace rackcast
