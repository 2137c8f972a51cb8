// Target against generated, row by row.
#pragma once
#include <string>
#include <vector>

#include "sim/trace/statistics.hpp"

namespace rackcast {

struct ShapeRow {
  std::string name;
  double target = 0;
  double generated = 0;
  double tolerance = 0;  // relative bound of the built-in shape; 0: no bound
};

// The published statistics of the AgentX v1.0 corpus (062126): InferenceX's AgentX notes and third-party measurements
// of the whole corpus.
std::vector<ShapeRow> agentx_v1_rows(const TraceStatistics& generated);
// The same rows, with another trace's statistics as the target.
std::vector<ShapeRow> like_rows(const TraceStatistics& target, const TraceStatistics& generated);

}  // namespace rackcast
