#include "sim/trace/trace_builder.hpp"

namespace rackcast {

Session& TraceBuilder::begin_session() {
  Session session;
  session.requests_begin = static_cast<std::uint32_t>(trace_.requests.size());
  session.groups_begin = static_cast<std::uint32_t>(trace_.groups.size());
  trace_.sessions.push_back(session);
  return trace_.sessions.back();
}

std::uint16_t TraceBuilder::model(std::string_view name) {
  if (const auto known = models_.find(name); known != models_.end()) return known->second;
  // Beyond 65,535 names all further ones are one model; names only separate chains.
  if (trace_.models.size() >= 0xFFFF) return 0xFFFF;
  const auto index = static_cast<std::uint16_t>(trace_.models.size());
  trace_.models.emplace_back(name);
  models_.emplace(name, index);
  return index;
}

bool TraceBuilder::add_run(TraceRequest& request, std::uint64_t first, std::uint64_t count) {
  if (count == 0) return true;
  if (first > max_block_id || count > max_block_id - first + 1) return false;
  std::vector<HashRun>& runs = trace_.runs;
  if (request.runs_count > 0 && runs.back().first + runs.back().count == first) {
    runs.back().count += static_cast<std::uint32_t>(count);
  } else {
    runs.push_back({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)});
    ++request.runs_count;
  }
  return true;
}

void TraceBuilder::drop_last_block(TraceRequest& request) {
  if (request.runs_count == 0) return;
  if (--trace_.runs.back().count > 0) return;
  trace_.runs.pop_back();
  --request.runs_count;
}

void TraceBuilder::add_request(const TraceRequest& request) {
  trace_.requests.push_back(request);
  ++trace_.sessions.back().requests_count;
}

}  // namespace rackcast
