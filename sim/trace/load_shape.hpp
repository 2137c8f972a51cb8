// What the generator knows of a load: percentiles and shares, no request. One is built in (AgentX v1.0); shape_of()
// takes it from a user's own trace.
#pragma once
#include <cstdint>
#include <string>

#include "sim/trace/quantile_curve.hpp"
#include "sim/trace/trace.hpp"

namespace rackcast {

struct LoadShape {
  std::string name;
  std::uint32_t sessions = 1;
  std::uint32_t block_tokens = 64;
  double longest_input = 989'824;

  // Main agent. A session is one or more threads: the root and, after long gaps, conversations begun anew.
  QuantileCurve turns;              // main requests of a session
  QuantileCurve start_tokens;       // of the root's first request
  double system_tokens = 0;         // prefix common to all threads of a session
  QuantileCurve growth_tokens;      // new input of a turn that extends its history
  double growth_likeness = 0;       // correlation of the growths within a session (of their normal scores)
  double growth_turns_rank = 0;     // rank correlation of a session's growth level with its turns
  QuantileCurve window_tokens;      // a session compacts when its context gets here
  double compaction_share = 0;      // of turns, before the window is full
  QuantileCurve compacted_tokens;   // context after a compaction
  double rewrite_share = 0;         // of turns: the end of the history is replaced
  QuantileCurve rewritten_tokens;   // how much of it
  QuantileCurve output_tokens;
  double output_likeness = 0;       // as for growth
  double output_turns_rank = 0;
  QuantileCurve gap_s;              // end to start, main requests
  double thread_gap_s = 3600;       // gaps longer than this begin a new thread ...
  double thread_share = 0;          // ... in this share of cases
  double thread_deep_share = 0;     // of new threads: goes back to an early state of the one before, less than half of it
  QuantileCurve thread_start_tokens;  // context of the other ones' first request
  double side_share = 0;            // of main requests: single calls beside a thread, ...
  double side_session_share = 1;    // ... in this share of the sessions
  double side_deep_share = 0;       // of those: with the thread's whole context in front; the others have a small one
  QuantileCurve side_tokens;        // new input of a side call

  // Declared subagents.
  double group_session_share = 0;   // sessions that have any
  QuantileCurve groups;             // of such a session
  double groups_turns_rank = 0;     // rank correlation with its turns
  QuantileCurve groups_at_once;     // most groups that it starts together
  QuantileCurve group_requests;
  QuantileCurve group_seconds;
  double group_seconds_rank = 0;    // rank correlation of length and requests
  double sibling_share = 0;         // of a group's requests: single calls beside its main chain, ...
  double sibling_group_share = 1;   // ... in this share of the groups
  double agent_kinds = 1;           // kinds of subagent a session uses; groups of a kind share their first tokens
  double agent_system_tokens = 0;
  QuantileCurve group_start_tokens; // new input of a group's first request
  QuantileCurve group_growth_tokens;
  double group_growth_likeness = 0;
  double group_window_tokens = 0;
  QuantileCurve sibling_tokens;     // new input of a sibling
  double sibling_deep_share = 0;    // siblings that keep the group's context of that time
  QuantileCurve group_output_tokens;
  QuantileCurve group_gap_s;        // relative weights: a group's length is given
  double background_share = 0;      // batches that the main agent does not wait for

  // Recorded server time of a call: first token + output / rate.
  double first_token_s = 1;
  double output_rate_per_s = 80;
  double think_share = 1;           // recorded think time / gap
};

// The AgentX v1.0 corpus (062126), fitted to its published statistics; see README.md for what each rests on.
const LoadShape& agentx_v1_shape();

// The shape of a trace of agent sessions. UserError when it has none.
LoadShape shape_of(const Trace& trace);

}  // namespace rackcast
