#include "sim/trace/read.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/trace/formats.hpp"
#include "sim/trace/json_reader.hpp"

namespace rackcast {
namespace {

constexpr std::array formats = {
    TraceFormat{"weka", "agent sessions (kv-cache-tester, AgentX corpora; block ids or runs of them)", is_weka, read_weka},
    TraceFormat{"mooncake", "Mooncake FAST'25 JSON lines", is_mooncake, read_mooncake},
    TraceFormat{"azure", "Azure LLM inference CSV", is_azure, read_azure},
};

constexpr double slack_s = 1e-3;  // times are recorded to a millisecond

bool is_load_file(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  const auto ends = [&name](std::string_view suffix) { return name.ends_with(suffix) || name.ends_with(std::string(suffix) + ".gz"); };
  return name.front() != '.' && (ends(".json") || ends(".jsonl") || ends(".csv"));
}

std::vector<std::string> files_of(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (!entry.is_directory() && is_load_file(entry.path())) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  if (files.empty()) throw UserError(path, 0, 0, "", "the folder has no .json, .jsonl or .csv file (plain or .gz)");
  return files;
}

void read_source(ByteSource& source, TraceBuilder& builder) {
  const std::string_view head = source.window().substr(0, std::size_t{1} << 16);
  if (head.empty()) source.fail("", "the file is empty");
  const auto format = std::find_if(formats.begin(), formats.end(), [&](const TraceFormat& f) { return f.recognises(head); });
  if (format == formats.end()) {
    std::vector<std::string_view> names;
    names.reserve(formats.size());
    for (const TraceFormat& known : formats) names.push_back(known.name);
    source.fail("", fmt::format("not a load file that we know ({})", fmt::join(names, ", ")));
  }
  const bool had_sessions = !builder.trace().sessions.empty();
  const bool was_global = std::exchange(builder.trace().block_ids_global, false);  // a reader of arrivals sets it
  format->read(source, builder);
  if (had_sessions && was_global != builder.trace().block_ids_global)
    source.fail("", "files whose block ids are shared and files whose ids are local to a session cannot be one load");
  builder.trace().content_hash = builder.trace().content_hash * 31 + source.content_hash();
}

// What one group's times prove.
enum class Times { either, relative, absolute };

// Counted from the group's start, the first request comes soon and none long after the group's recorded length, which
// may be somewhat short. Counted from the session's start, none comes before the group's start.
Times times_of(const SubagentGroup& group, double first_s, double last_s) {
  constexpr double soon_s = 600, spare_s = 60;
  if (first_s < group.start_s - slack_s) return Times::relative;
  if (first_s > soon_s || last_s > 2 * group.duration_s + spare_s) return Times::absolute;  // false for a NaN length
  return Times::either;
}

struct Evidence {
  bool relative = false, absolute = false;
};

Evidence evidence_of(const Trace& trace, const Session& session) {
  Evidence evidence;
  std::vector<double> first(session.groups_count, INFINITY), last(session.groups_count, -INFINITY);
  for (std::uint32_t i = 0; i < session.requests_count; ++i) {
    const TraceRequest& request = trace.requests[session.requests_begin + i];
    if (request.group < 0) continue;
    const auto group = static_cast<std::size_t>(request.group);
    first[group] = std::min(first[group], request.start_s);
    last[group] = std::max(last[group], request.start_s);
  }
  for (std::uint32_t g = 0; g < session.groups_count; ++g) {
    if (std::isinf(first[g])) continue;
    const Times times = times_of(trace.groups[session.groups_begin + g], first[g], last[g]);
    evidence.relative |= times == Times::relative;
    evidence.absolute |= times == Times::absolute;
  }
  return evidence;
}

}  // namespace

std::span<const TraceFormat> trace_formats() { return formats; }

std::vector<std::string> first_json_keys(std::string_view head) {
  std::vector<std::string> keys;
  ByteSource source("", head);
  JsonReader json(source);
  try {
    json.begin_object();
    while (keys.size() < 8 && json.next_key()) {
      keys.emplace_back(json.key());
      json.skip();
    }
    return keys;
  } catch (const UserError&) {
    return keys;  // cut inside a value, or not JSON: the keys seen so far decide
  }
}

void make_group_times_absolute(Trace& trace) {
  std::vector<Evidence> evidence;
  Evidence all;
  for (const Session& session : trace.sessions) {
    evidence.push_back(evidence_of(trace, session));
    if (evidence.back().relative && evidence.back().absolute)
      throw UserError(trace.source, 0, 0, "requests",
                      fmt::format("session '{}' has subagent times both from the group's start and from the session's start", session.id));
    all.relative |= evidence.back().relative;
    all.absolute |= evidence.back().absolute;
  }
  for (std::size_t s = 0; s < trace.sessions.size(); ++s) {
    // A session that proves nothing follows the others; where those differ or prove nothing either, times at or after
    // the group's start are taken as absolute.
    const bool relative = evidence[s].relative || (!evidence[s].absolute && all.relative && !all.absolute);
    if (!relative) continue;
    const Session& session = trace.sessions[s];
    for (std::uint32_t i = 0; i < session.requests_count; ++i) {
      TraceRequest& request = trace.requests[session.requests_begin + i];
      if (request.group >= 0) request.start_s += trace.groups[session.groups_begin + static_cast<std::uint32_t>(request.group)].start_s;
    }
  }
}

Trace read_trace(const std::vector<std::string>& paths, const TraceLimits& limits) {
  Trace trace;
  trace.content_hash = 0;
  TraceBuilder builder(trace, limits);
  for (const std::string& path : paths) {
    trace.source += (trace.source.empty() ? "" : " ") + path;
    for (const std::string& file : files_of(path)) {
      ByteSource source(file);
      read_source(source, builder);
    }
  }
  make_group_times_absolute(trace);
  return trace;
}

Trace read_trace_text(const std::string& name, std::string_view text, const TraceLimits& limits) {
  Trace trace;
  trace.source = name;
  TraceBuilder builder(trace, limits);
  ByteSource source(name, text);
  read_source(source, builder);
  make_group_times_absolute(trace);
  return trace;
}

}  // namespace rackcast
