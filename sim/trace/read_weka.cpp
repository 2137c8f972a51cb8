// Weka / kv-cache-tester / AgentX sessions: one JSON object a session, alone in a file or one after another (JSON lines).
// Block ids come as `hash_ids` (one id a block) or `hash_runs` ([[first, count], ...]), never both.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/trace/formats.hpp"
#include "sim/trace/json_reader.hpp"

namespace rackcast {
namespace {

constexpr double max_seconds = 1e9;

class SessionReader {
 public:
  SessionReader(ByteSource& source, TraceBuilder& builder) : source_(source), json_(source), builder_(builder) {}

  bool read_next() {
    if (json_.at_end()) return false;
    const int line = source_.line();
    builder_.begin_session();
    if (builder_.agents_full()) json_.fail("more sessions than fit; split the file");
    std::uint32_t block_tokens = 64;
    std::string id;
    bool has_requests = false;
    json_.begin_object();
    while (json_.next_key()) {
      const std::string_view key = json_.key();
      if (key == "id") id = json_.string();
      else if (key == "block_size") block_tokens = read_block_size();
      else if (key == "hash_id_scope") read_scope();
      else if (key == "requests") {
        if (std::exchange(has_requests, true)) json_.fail("given twice");
        read_list("requests", -1);
      } else json_.skip();
    }
    if (!has_requests) json_.fail("requests", "a session needs the list of its requests");
    Session& session = builder_.trace().sessions.back();
    session.id = id.empty() ? fmt::format("line {}", line) : id;
    session.block_tokens = block_tokens;
    check_blocks(session);
    return true;
  }

 private:
  std::uint32_t read_block_size() {
    const auto size = static_cast<std::uint32_t>(json_.integer(builder_.limits().block_tokens));
    if (size == 0) json_.fail("must be at least 1 token");
    return size;
  }

  void read_scope() {
    const std::string& scope = json_.string();
    if (scope != "local") json_.fail(fmt::format("'{}' is not supported; sessions of this format have 'local' block ids", scope));
  }

  void read_list(const char* name, std::int32_t group) {
    json_.begin_array();
    for (std::size_t index = 0; json_.next_element(); ++index) {
      json_.push_path(fmt::format("{}[{}]", name, index));
      read_entry(group);
      json_.pop_path();
    }
  }

  // A request, or a subagent group of the main agent: what has `requests` of its own is a group.
  void read_entry(std::int32_t group) {
    TraceRequest request;
    request.group = group;
    SubagentGroup own_group;
    own_group.duration_s = std::numeric_limits<double>::quiet_NaN();
    bool is_group = false, has_time = false, has_input = false, has_output = false;
    if (builder_.agents_full()) json_.fail("more requests and subagent groups than fit; split the file");
    builder_.begin_request(request);
    json_.begin_object();
    while (json_.next_key()) {
      const std::string_view key = json_.key();
      if (key == "t") { request.start_s = seconds(); has_time = true; }
      else if (key == "in") { request.input_tokens = tokens(); has_input = true; }
      else if (key == "out") { request.output_tokens = tokens(); has_output = true; }
      else if (key == "model") request.model = builder_.model(json_.string());
      else if (key == "api_time") { if (!json_.null()) request.api_time_s = seconds(); }
      else if (key == "think_time") { if (!json_.null()) request.think_time_s = static_cast<float>(seconds()); }
      else if (key == "duration_ms") { if (!json_.null()) own_group.duration_s = seconds(1e3) / 1e3; }
      else if (key == "hash_ids") read_ids(request);
      else if (key == "hash_runs") read_runs(request);
      else if (key == "type") is_group = json_.string() == "subagent" || is_group;
      else if (key == "requests") { is_group = true; begin_group(group, own_group); }
      else json_.skip();
    }
    if (!has_time) json_.fail("t", "start time is missing");
    if (is_group) return end_group(own_group, request.start_s);
    if (!has_input) json_.fail("in", "input length is missing");
    if (!has_output) json_.fail("out", "output length is missing");
    builder_.add_request(request);
  }

  void begin_group(std::int32_t outer, SubagentGroup& group) {
    if (outer >= 0) json_.fail("a subagent group inside another one is not supported");
    Trace& trace = builder_.trace();
    Session& session = trace.sessions.back();
    const auto index = static_cast<std::int32_t>(session.groups_count++);
    trace.groups.push_back(group);
    open_group_ = static_cast<std::int64_t>(trace.groups.size()) - 1;
    read_list("requests", index);
  }

  // The group's own keys may stand before or after its list.
  void end_group(SubagentGroup group, double start_s) {
    group.start_s = start_s;
    if (open_group_ < 0) {  // a group without a list: nothing to replay, but it counts
      ++builder_.trace().sessions.back().groups_count;
      builder_.trace().groups.push_back(group);
      return;
    }
    builder_.trace().groups[static_cast<std::size_t>(open_group_)] = group;
    open_group_ = -1;
  }

  double seconds(double scale = 1) {
    const double value = json_.number();
    if (value < 0 || value > max_seconds * scale) json_.fail(fmt::format("{} is not a time from 0 to {:g} s", value, max_seconds));
    return value;
  }
  std::uint32_t tokens() { return static_cast<std::uint32_t>(json_.integer(builder_.limits().tokens_per_request)); }

  void read_ids(TraceRequest& request) {
    if (request.runs_count > 0) json_.fail("give hash_ids or hash_runs once, not both");
    json_.begin_array();
    // Gather consecutive ids here: nearly all are.
    std::uint64_t first = 0, count = 0, id = 0;
    while (json_.next_integer(id, TraceBuilder::max_block_id)) {
      if (count > 0 && id == first + count) {
        ++count;
        continue;
      }
      add_run(request, first, count);
      first = id;
      count = 1;
    }
    add_run(request, first, count);
  }

  void read_runs(TraceRequest& request) {
    if (request.runs_count > 0) json_.fail("give hash_ids or hash_runs once, not both");
    json_.begin_array();
    while (json_.next_element()) {
      json_.begin_array();
      std::uint64_t pair[2] = {0, 0};
      int given = 0;
      while (json_.next_element()) {
        if (given == 2) json_.fail("a run is [first id, count]");
        pair[given++] = json_.integer(TraceBuilder::max_block_id);
      }
      if (given != 2 || pair[1] == 0) json_.fail("a run is [first id, count] with a count of at least 1");
      add_run(request, pair[0], pair[1]);
    }
  }

  void add_run(TraceRequest& request, std::uint64_t first, std::uint64_t count) {
    if (!builder_.add_run(request, first, count)) json_.fail("block id does not fit 32 bits");
    if (builder_.full()) json_.fail("more runs of block ids than fit; split the file");
  }

  void check_blocks(const Session& session) {
    const Trace& trace = builder_.trace();
    for (std::uint32_t i = 0; i < session.requests_count; ++i) {
      const TraceRequest& request = trace.requests[session.requests_begin + i];
      std::uint64_t blocks = 0;
      for (const HashRun& run : trace.runs_of(request)) blocks += run.count;
      if (blocks * session.block_tokens >= std::uint64_t{request.input_tokens} + session.block_tokens)
        json_.fail("requests", fmt::format("request {} of session '{}': {} blocks of {} tokens are more than its {} input tokens", i,
                                           session.id, blocks, session.block_tokens, request.input_tokens));
    }
  }

  ByteSource& source_;
  JsonReader json_;
  TraceBuilder& builder_;
  std::int64_t open_group_ = -1;
};

}  // namespace

bool is_weka(std::string_view head) {
  const std::vector<std::string> keys = first_json_keys(head);
  return std::any_of(keys.begin(), keys.end(), [](const std::string& key) {
    return key == "requests" || key == "hash_id_scope" || key == "block_size";
  });
}

void read_weka(ByteSource& source, TraceBuilder& into) {
  SessionReader reader(source, into);
  while (reader.read_next()) {}
}

}  // namespace rackcast
