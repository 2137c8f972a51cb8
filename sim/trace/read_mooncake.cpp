// Mooncake (FAST'25): JSON lines of {timestamp (ms), input_length, output_length, hash_ids}; 512-token blocks whose ids
// are shared by all rows. The recorded ids include the last, partly filled block; only full blocks can be reused, so
// it is dropped.
#include <fmt/format.h>

#include <algorithm>

#include "sim/trace/formats.hpp"
#include "sim/trace/json_reader.hpp"

namespace rackcast {
namespace {

constexpr std::uint32_t mooncake_block_tokens = 512;
constexpr double max_milliseconds = 1e12;

void read_row(JsonReader& json, TraceBuilder& into) {
  TraceRequest request;
  into.begin_request(request);
  bool has_time = false, has_input = false, has_output = false;
  std::uint64_t blocks = 0;
  json.begin_object();
  while (json.next_key()) {
    const std::string_view key = json.key();
    if (key == "timestamp") {
      const double milliseconds = json.number();
      if (milliseconds < 0 || milliseconds > max_milliseconds) json.fail(fmt::format("{} ms is out of range", milliseconds));
      request.start_s = milliseconds / 1e3;
      has_time = true;
    } else if (key == "input_length") {
      request.input_tokens = static_cast<std::uint32_t>(json.integer(into.limits().tokens_per_request));
      has_input = true;
    } else if (key == "output_length") {
      request.output_tokens = static_cast<std::uint32_t>(json.integer(into.limits().tokens_per_request));
      has_output = true;
    } else if (key == "hash_ids") {
      if (blocks > 0) json.fail("given twice");
      json.begin_array();
      for (; json.next_element(); ++blocks)
        if (!into.add_run(request, json.integer(TraceBuilder::max_block_id), 1)) json.fail("block id does not fit 32 bits");
    } else {
      json.skip();
    }
  }
  if (!has_time) json.fail("timestamp", "arrival time is missing");
  if (!has_input) json.fail("input_length", "input length is missing");
  if (!has_output) json.fail("output_length", "output length is missing");
  if (into.full()) json.fail("more requests than fit; split the file");
  const std::uint64_t full_blocks = request.input_tokens / mooncake_block_tokens;
  if (blocks > full_blocks + 1)
    json.fail("hash_ids", fmt::format("{} blocks of {} tokens are more than {} input tokens", blocks, mooncake_block_tokens, request.input_tokens));
  if (blocks > full_blocks) into.drop_last_block(request);
  into.add_request(request);
}

}  // namespace

bool is_mooncake(std::string_view head) {
  const std::vector<std::string> keys = first_json_keys(head);
  return std::find(keys.begin(), keys.end(), "input_length") != keys.end();
}

void read_mooncake(ByteSource& source, TraceBuilder& into) {
  into.trace().block_ids_global = true;
  Session& session = into.begin_session();
  session.id = "mooncake";
  session.block_tokens = mooncake_block_tokens;
  JsonReader json(source);
  while (!json.at_end()) read_row(json, into);
}

}  // namespace rackcast
