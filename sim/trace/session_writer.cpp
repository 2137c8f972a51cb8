#include "sim/trace/session_writer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/error.hpp"

namespace rackcast {

SessionWriter::SessionWriter(Trace& trace, std::string id, std::uint32_t block_tokens) : trace_(trace) {
  session_.id = std::move(id);
  session_.block_tokens = block_tokens;
}

Context SessionWriter::fresh(double tokens) {
  Context context;
  if (tokens > 0) extend(context, tokens);
  return context;
}

void SessionWriter::extend(Context& context, double tokens) {
  const auto blocks = static_cast<std::uint32_t>(std::max(1.0, std::round(tokens / session_.block_tokens)));
  RACKCAST_CHECK(next_block_ < 0xFFFF'FFFFU - blocks, "a session's block ids fit 32 bits");
  if (!context.runs.empty() && context.runs.back().first + context.runs.back().count == next_block_) context.runs.back().count += blocks;
  else context.runs.push_back({next_block_, blocks});
  context.blocks += blocks;
  next_block_ += blocks;
}

void SessionWriter::truncate(Context& context, double tokens) {
  const auto keep = static_cast<std::uint32_t>(std::max(0.0, std::floor(tokens / session_.block_tokens)));
  while (context.blocks > keep) {
    HashRun& last = context.runs.back();
    const std::uint32_t cut = std::min(last.count, context.blocks - keep);
    context.blocks -= cut;
    last.count -= cut;
    if (last.count == 0) context.runs.pop_back();
  }
}

void SessionWriter::begin_group(double start_s, double duration_s) {
  group_ = static_cast<std::int32_t>(groups_.size());
  groups_.push_back({start_s, duration_s});
}

void SessionWriter::end_group() { group_ = -1; }

void SessionWriter::add(const CallRecord& call, const Context& context) {
  calls_.push_back({call, static_cast<std::uint32_t>(runs_.size()), static_cast<std::uint32_t>(context.runs.size()), context.blocks, group_});
  runs_.insert(runs_.end(), context.runs.begin(), context.runs.end());
}

void SessionWriter::finish() {
  session_.requests_begin = static_cast<std::uint32_t>(trace_.requests.size());
  session_.requests_count = static_cast<std::uint32_t>(calls_.size());
  session_.groups_begin = static_cast<std::uint32_t>(trace_.groups.size());
  session_.groups_count = static_cast<std::uint32_t>(groups_.size());
  // Main calls by start, a group's calls together where the group starts. Groups are numbered in that order.
  std::vector<std::uint32_t> rank(groups_.size());
  std::iota(rank.begin(), rank.end(), 0U);
  std::stable_sort(rank.begin(), rank.end(), [this](std::uint32_t a, std::uint32_t b) { return groups_[a].start_s < groups_[b].start_s; });
  std::vector<std::int32_t> number(groups_.size());
  for (std::size_t i = 0; i < rank.size(); ++i) {
    number[rank[i]] = static_cast<std::int32_t>(i);
    trace_.groups.push_back(groups_[rank[i]]);
  }
  for (Call& call : calls_)
    if (call.group >= 0) call.group = number[static_cast<std::size_t>(call.group)];
  std::stable_sort(calls_.begin(), calls_.end(), [this](const Call& a, const Call& b) {
    const auto place = [this](const Call& c) {
      return c.group < 0 ? c.record.start_s : trace_.groups[session_.groups_begin + static_cast<std::uint32_t>(c.group)].start_s;
    };
    if (place(a) != place(b)) return place(a) < place(b);
    if (a.group != b.group) return a.group < b.group;
    return a.record.start_s < b.record.start_s;
  });
  for (const Call& call : calls_) write(call);
  trace_.sessions.push_back(std::move(session_));
}

void SessionWriter::write(const Call& call) {
  TraceRequest request;
  // As recorded: to the millisecond.
  const auto milli = [](double seconds) { return std::round(seconds * 1e3) / 1e3; };
  request.start_s = milli(call.record.start_s);
  request.api_time_s = milli(call.record.api_s);
  request.think_time_s = static_cast<float>(milli(call.record.think_s));
  request.input_tokens = call.blocks * session_.block_tokens;
  request.output_tokens = call.record.output_tokens;
  request.runs_begin = static_cast<std::uint32_t>(trace_.runs.size());
  request.runs_count = call.runs_count;
  request.group = call.group;
  request.model = call.record.model;
  trace_.runs.insert(trace_.runs.end(), runs_.begin() + call.runs_begin, runs_.begin() + call.runs_begin + call.runs_count);
  trace_.requests.push_back(request);
}

}  // namespace rackcast
