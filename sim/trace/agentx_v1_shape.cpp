#include "sim/trace/load_shape.hpp"

namespace rackcast {

const LoadShape& agentx_v1_shape() {
  static const LoadShape shape = [] {
    LoadShape s;
    s.name = "generated-v1.0";
    s.sessions = 393;
    s.turns = {{0, 10}, {0.1, 21}, {0.25, 35}, {0.5, 65}, {0.75, 148}, {0.9, 330}, {0.97, 720}, {0.99, 1200}, {0.9987, 3052}, {1, 3100}};
    s.start_tokens = {{0, 16e3}, {0.5, 55e3}, {0.9, 145e3}, {1, 600e3}};
    s.system_tokens = 13e3;
    s.growth_tokens = {{0, 64}, {0.1, 290}, {0.5, 1420}, {0.9, 4750}, {0.98, 11.3e3}, {0.994, 42e3}, {1, 210e3}};
    s.growth_likeness = 0.2;
    s.growth_turns_rank = 0.25;
    s.window_tokens = {{0, 180e3}, {0.03, 300e3}, {0.05, 900e3}, {1, 989e3}};
    s.compaction_share = 0.0002;
    s.compacted_tokens = {{0, 20e3}, {0.5, 100e3}, {1, 300e3}};
    s.rewrite_share = 0.022;
    s.rewritten_tokens = {{0, 200}, {0.5, 4e3}, {0.9, 25e3}, {1, 300e3}};
    s.output_tokens = {{0, 1}, {0.02, 40}, {0.1, 110}, {0.5, 620}, {0.9, 3502}, {0.99, 10.5e3}, {1, 48e3}};
    s.output_likeness = 0.3;
    s.output_turns_rank = 0.2;
    s.gap_s = {{0, 0.05}, {0.1, 1.4}, {0.25, 2.6}, {0.5, 4.9}, {0.75, 17}, {0.9, 125}, {0.955, 280}, {0.986, 1800}, {0.99, 3257}, {0.996, 23e3}, {0.999, 70e3}, {1, 300e3}};
    s.thread_gap_s = 3600;
    s.thread_share = 0.34;
    s.thread_deep_share = 0.9;
    s.thread_start_tokens = {{0, 20e3}, {0.5, 120e3}, {0.9, 350e3}, {1, 700e3}};
    s.side_share = 0.017;
    s.side_session_share = 0.4;
    s.side_deep_share = 0.2;
    s.side_tokens = {{0, 300}, {0.5, 3e3}, {0.9, 12e3}, {1, 60e3}};
    s.group_session_share = 0.445;
    s.groups = {{0, 1}, {0.5, 4}, {0.9, 26.5}, {1, 125}};
    s.groups_turns_rank = 0.6;
    s.groups_at_once = {{0, 1}, {0.15, 2}, {0.5, 5}, {0.9, 9}, {1, 10}};
    s.group_requests = {{0, 1}, {0.1, 4}, {0.5, 16}, {0.9, 50}, {0.99, 155}, {0.9995, 789}, {1, 800}};
    s.group_seconds = {{0, 5}, {0.1, 36}, {0.5, 136}, {0.95, 1110}, {1, 5000}};
    s.group_seconds_rank = 0.8;
    s.sibling_share = 0.17;
    s.sibling_group_share = 0.5;
    s.agent_kinds = 3;
    s.agent_system_tokens = 12e3;
    s.group_start_tokens = {{0, 2e3}, {0.5, 22e3}, {0.9, 42e3}, {1, 150e3}};
    s.group_growth_tokens = {{0, 64}, {0.1, 380}, {0.5, 1600}, {0.9, 5500}, {0.99, 16e3}, {1, 100e3}};
    s.group_growth_likeness = 0.1;
    s.group_window_tokens = 450e3;
    s.sibling_tokens = {{0, 300}, {0.5, 3.5e3}, {0.9, 12e3}, {1, 100e3}};
    s.sibling_deep_share = 0.1;
    s.group_output_tokens = {{0, 1}, {0.02, 30}, {0.1, 60}, {0.5, 289}, {0.9, 1530}, {0.99, 5500}, {1, 32e3}};
    s.group_gap_s = {{0, 0.05}, {0.5, 1.5}, {0.9, 10}, {1, 300}};
    s.background_share = 0.1;
    s.first_token_s = 1.5;
    s.output_rate_per_s = 85;
    s.think_share = 0.8;
    return s;
  }();
  return shape;
}

}  // namespace rackcast
