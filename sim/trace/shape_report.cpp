#include "sim/trace/shape_report.hpp"

#include <span>

namespace rackcast {
namespace {

struct Row {
  const char* name;
  double (*value)(const TraceStatistics&);
  double published;   // AgentX v1.0
  double tolerance;
};

constexpr double middle = 0.10, tail = 0.20, none = 0;

const Row rows[] = {
    {"sessions", [](const TraceStatistics& s) { return static_cast<double>(s.sessions); }, 393, 1e-9},
    {"requests", [](const TraceStatistics& s) { return static_cast<double>(s.requests); }, 98827, middle},
    {"requests of main agents", [](const TraceStatistics& s) { return static_cast<double>(s.main_requests); }, 56798, middle},
    {"requests of subagents", [](const TraceStatistics& s) { return static_cast<double>(s.inner_requests); }, 42029, middle},
    {"input tokens", [](const TraceStatistics& s) { return s.input_tokens; }, 21635381376, middle},
    {"output tokens", [](const TraceStatistics& s) { return s.output_tokens; }, 106474498, middle},
    {"input p50", [](const TraceStatistics& s) { return s.input.p50; }, 142016, middle},
    {"input p90", [](const TraceStatistics& s) { return s.input.p90; }, 549504, tail},
    {"input p99", [](const TraceStatistics& s) { return s.input.p99; }, 863424, tail},
    {"input max", [](const TraceStatistics& s) { return s.input.max; }, 989824, middle},
    {"input of main agents p50", [](const TraceStatistics& s) { return s.input_main.p50; }, 254080, middle},
    {"input of main agents p90", [](const TraceStatistics& s) { return s.input_main.p90; }, 651008, tail},
    {"input of main agents p99", [](const TraceStatistics& s) { return s.input_main.p99; }, 897672, tail},
    {"input of subagents p50", [](const TraceStatistics& s) { return s.input_inner.p50; }, 64000, middle},
    {"input of subagents p90", [](const TraceStatistics& s) { return s.input_inner.p90; }, 196326, tail},
    {"output p50", [](const TraceStatistics& s) { return s.output.p50; }, 444, middle},
    {"output of main agents p50", [](const TraceStatistics& s) { return s.output_main.p50; }, 616, middle},
    {"output of main agents p90", [](const TraceStatistics& s) { return s.output_main.p90; }, 3502, tail},
    {"output of main agents mean", [](const TraceStatistics& s) { return s.output_main.mean; }, 1374, middle},
    {"new tokens p50", [](const TraceStatistics& s) { return s.new_tokens.p50; }, 1664, middle},
    {"new tokens p99", [](const TraceStatistics& s) { return s.new_tokens.p99; }, 46722, tail},
    {"new tokens mean", [](const TraceStatistics& s) { return s.new_tokens.mean; }, 3792, middle},
    {"turns of a session p50", [](const TraceStatistics& s) { return s.turns_per_session.p50; }, 65, middle},
    {"turns of a session p90", [](const TraceStatistics& s) { return s.turns_per_session.p90; }, 330, tail},
    {"turns of a session max", [](const TraceStatistics& s) { return s.turns_per_session.max; }, 3052, tail},
    {"gap p50, s", [](const TraceStatistics& s) { return s.gap_s.p50; }, 4.9, middle},
    {"gap p90, s", [](const TraceStatistics& s) { return s.gap_s.p90; }, 131.5, tail},
    {"gap p99, s", [](const TraceStatistics& s) { return s.gap_s.p99; }, 3257, tail},
    {"gap mean, s", [](const TraceStatistics& s) { return s.gap_s.mean; }, 395, middle},
    {"gaps over 300 s", [](const TraceStatistics& s) { return s.gap_over_300_s; }, 0.045, middle},
    {"gaps over 1800 s", [](const TraceStatistics& s) { return s.gap_over_1800_s; }, 0.014, middle},
    {"think time p50, s", [](const TraceStatistics& s) { return s.think_s.p50; }, 2.3, middle},
    {"think time p90, s", [](const TraceStatistics& s) { return s.think_s.p90; }, 37.5, tail},
    {"sessions with groups", [](const TraceStatistics& s) { return static_cast<double>(s.sessions_with_groups); }, 175, 0.01},
    {"groups", [](const TraceStatistics& s) { return static_cast<double>(s.subagent_groups); }, 1697, middle},
    {"groups of a session p50", [](const TraceStatistics& s) { return s.groups_per_session.p50; }, 4, 0.25},
    {"requests of a group p50", [](const TraceStatistics& s) { return s.requests_per_group.p50; }, 16, middle},
    {"requests of a group max", [](const TraceStatistics& s) { return s.requests_per_group.max; }, 789, tail},
    {"length of a group p50, min", [](const TraceStatistics& s) { return s.group_minutes.p50; }, 2.27, middle},
    {"length of a group p95, min", [](const TraceStatistics& s) { return s.group_minutes.p95; }, 18.5, tail},
    {"groups at once p50", [](const TraceStatistics& s) { return s.groups_at_once.p50; }, 3, 1.0 / 3},
    {"groups at once max", [](const TraceStatistics& s) { return s.groups_at_once.max; }, 10, 0.1},
    {"hit, infinite cache", [](const TraceStatistics& s) { return s.hit_ideal; }, 0.983088, 0.003 / 0.983088},
    {"hit, previous request", [](const TraceStatistics& s) { return s.hit_previous; }, 0.972096, 0.004 / 0.972096},
    {"output share", [](const TraceStatistics& s) { return s.output_share; }, 0.0049, 0.0005 / 0.0049},
    {"streams", [](const TraceStatistics& s) { return static_cast<double>(s.streams); }, 9843, none},
    {"undeclared chains in groups", [](const TraceStatistics& s) { return static_cast<double>(s.sibling_streams); }, 6331, none},
    {"undeclared chains of main agents", [](const TraceStatistics& s) { return static_cast<double>(s.flat_streams); }, 1422, none},
    {"barrier edges", [](const TraceStatistics& s) { return static_cast<double>(s.barrier_edges); }, 76423, none},
    {"requests behind barriers", [](const TraceStatistics& s) { return static_cast<double>(s.gated_requests); }, 61136, none},
};

}  // namespace

std::vector<ShapeRow> agentx_v1_rows(const TraceStatistics& generated) {
  std::vector<ShapeRow> result;
  for (const Row& row : rows) result.push_back({row.name, row.published, row.value(generated), row.tolerance});
  return result;
}

std::vector<ShapeRow> like_rows(const TraceStatistics& target, const TraceStatistics& generated) {
  std::vector<ShapeRow> result;
  for (const Row& row : rows) result.push_back({row.name, row.value(target), row.value(generated), row.tolerance});
  return result;
}

}  // namespace rackcast
