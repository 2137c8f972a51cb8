// Where the first play of a lane starts, as AgentX draws it.
#pragma once
#include <cstdint>
#include <string>

namespace rackcast {

// Share of the session's span, uniform in [low, high): numpy's default_rng seeded with the first eight bytes (big
// endian) of SHA-256 over "<seed>:<session id>", with ":<lane>" behind when the session is already on another lane.
double start_share(std::uint64_t seed, const std::string& session_id, std::uint32_t lane, bool wrapped, double low, double high);

}  // namespace rackcast
