#include "sim/trace/barriers.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace rackcast {
namespace {

// The latest call of one stream, by end, that started before and ended by `start_s`; null when there is none.
const RecordedCall* latest_ended(const std::vector<RecordedCall>& by_end, double start_s) {
  auto after = std::upper_bound(by_end.begin(), by_end.end(), start_s, [](double t, const RecordedCall& c) { return t < c.end_s; });
  while (after != by_end.begin()) {
    --after;
    if (after->start_s < start_s) return &*after;  // a call of no length at this very time has not "ended before"
  }
  return nullptr;
}

bool precedes(const RecordedCall& a, const RecordedCall& b) { return a.start_s < b.start_s && a.end_s <= b.start_s; }

}  // namespace

std::vector<std::vector<std::uint32_t>> start_barriers(std::span<const RecordedCall> scope) {
  std::map<std::uint32_t, std::vector<RecordedCall>> streams;
  for (const RecordedCall& call : scope) streams[call.stream].push_back(call);
  for (auto& [stream, calls] : streams)
    std::sort(calls.begin(), calls.end(), [](const RecordedCall& a, const RecordedCall& b) {
      return std::tie(a.end_s, a.start_s, a.node) < std::tie(b.end_s, b.start_s, b.node);
    });
  std::vector<std::vector<std::uint32_t>> waits(scope.size());
  if (streams.size() < 2) return waits;
  std::vector<const RecordedCall*> front;
  for (std::size_t i = 0; i < scope.size(); ++i) {
    front.clear();
    for (const auto& [stream, calls] : streams)
      if (stream != scope[i].stream)
        if (const RecordedCall* call = latest_ended(calls, scope[i].start_s)) front.push_back(call);
    for (const RecordedCall* call : front)
      if (std::none_of(front.begin(), front.end(), [&](const RecordedCall* later) { return later != call && precedes(*call, *later); }))
        waits[i].push_back(call->node);
    std::sort(waits[i].begin(), waits[i].end());
  }
  return waits;
}

}  // namespace rackcast
