// Builds one generated session: hands out block ids, collects calls in any order and writes them in the order of a
// recorded file.
#pragma once
#include <string>
#include <vector>

#include "sim/trace/trace.hpp"

namespace rackcast {

// The prompt of a call as runs of block ids.
struct Context {
  std::vector<HashRun> runs;
  std::uint32_t blocks = 0;
};

struct CallRecord {
  double start_s = 0, api_s = 0, think_s = 0;
  std::uint32_t output_tokens = 1;
  std::uint16_t model = 0;
};

class SessionWriter {
 public:
  SessionWriter(Trace& trace, std::string id, std::uint32_t block_tokens);
  Context fresh(double tokens);                        // blocks that nothing else has
  void extend(Context& context, double tokens);        // new blocks, at least one
  void truncate(Context& context, double tokens);      // keeps the blocks of the first `tokens`
  void begin_group(double start_s, double duration_s); // calls added until end_group() are its inner ones
  void end_group();
  void add(const CallRecord& call, const Context& context);
  void finish();                                       // into the trace

 private:
  struct Call {
    CallRecord record;
    std::uint32_t runs_begin, runs_count, blocks;
    std::int32_t group;
  };
  void write(const Call& call);

  Trace& trace_;
  Session session_;
  std::uint32_t next_block_ = 1;
  std::int32_t group_ = -1;
  std::vector<Call> calls_;
  std::vector<HashRun> runs_;
  std::vector<SubagentGroup> groups_;
};

}  // namespace rackcast
