// The formats of load files: one row each, told apart by their first bytes. A new format is a file read_<name>.cpp and
// a row in formats().
#pragma once
#include <span>
#include <string_view>

#include "sim/trace/byte_source.hpp"
#include "sim/trace/trace_builder.hpp"

namespace rackcast {

struct TraceFormat {
  std::string_view name;
  std::string_view description;
  bool (*recognises)(std::string_view head);         // the first bytes, up to 64 KiB
  void (*read)(ByteSource& source, TraceBuilder& into);
};

std::span<const TraceFormat> trace_formats();

// First top-level keys of the first JSON object in `head`, at most eight; empty when it is not JSON.
std::vector<std::string> first_json_keys(std::string_view head);

bool is_weka(std::string_view head);
void read_weka(ByteSource& source, TraceBuilder& into);
bool is_mooncake(std::string_view head);
void read_mooncake(ByteSource& source, TraceBuilder& into);
bool is_azure(std::string_view head);
void read_azure(ByteSource& source, TraceBuilder& into);

}  // namespace rackcast
