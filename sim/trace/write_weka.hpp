// Writes a Trace as agent sessions, one JSON object a line, block ids as runs; gzip when the path ends in .gz. What it
// writes reads back to the same trace.
#pragma once
#include <string>

#include "sim/trace/trace.hpp"

namespace rackcast {

// UserError when the trace has block ids shared by its sessions, which the format cannot say, or when writing fails.
void write_weka(const Trace& trace, const std::string& path);

}  // namespace rackcast
