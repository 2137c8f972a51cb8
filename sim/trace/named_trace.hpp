// The trace that a scenario names: `generated-v1.0` (or `generated-v1.0:SEED`), `kv-cache-tester`, or a path.
#pragma once
#include <string>

#include "sim/trace/trace.hpp"

namespace rackcast {

struct NamedTrace {
  Trace trace;
  std::string note;  // what the user should know: a stand-in was taken; empty: nothing
};

// kv-cache-tester is the recorded set under RACKCAST_DATA; without it the generated load stands in, and the note says so.
NamedTrace open_trace(const std::string& name);

}  // namespace rackcast
