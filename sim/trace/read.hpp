// Reads load files into one Trace: files of any known format, plain or gzip, and folders of them (by name).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/trace.hpp"
#include "sim/trace/trace_builder.hpp"

namespace rackcast {

Trace read_trace(const std::vector<std::string>& paths, const TraceLimits& limits = {});

// One file's bytes, already in memory; `name` is shown in problems.
Trace read_trace_text(const std::string& name, std::string_view text, const TraceLimits& limits = {});

// Inner times of subagent groups count from the group's start in kv-cache-tester files and from the session's start in
// the AgentX corpora. Decides which, from groups that can be only one of the two, and makes all of them absolute.
// UserError when one session has both kinds.
void make_group_times_absolute(Trace& trace);

}  // namespace rackcast
