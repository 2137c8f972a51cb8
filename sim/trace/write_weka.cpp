#include "sim/trace/write_weka.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <cmath>
#include <memory>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/output.hpp"

namespace rackcast {
namespace {

class Output {
 public:
  explicit Output(const std::string& path) : path_(path) {
    check_output_path(path);
    file_ = gzopen(path.c_str(), path.ends_with(".gz") ? "wb6" : "wbT");
    if (!file_) throw UserError(path, 0, 0, "", "cannot be written");
  }
  ~Output() {
    if (file_) gzclose(file_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  void write(const fmt::memory_buffer& text) {
    if (text.size() > 0 && gzwrite(file_, text.data(), static_cast<unsigned>(text.size())) <= 0) fail();
  }
  void close() {
    const int code = gzclose(file_);
    file_ = nullptr;
    if (code != Z_OK) fail();
  }

 private:
  [[noreturn]] void fail() const { throw UserError(path_, 0, 0, "", "writing failed (disk full?)"); }
  std::string path_;
  gzFile file_ = nullptr;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 32) out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else out += c;
  }
  return out + '"';
}

class Writer {
 public:
  Writer(const Trace& trace, Output& output) : trace_(trace), output_(output) {}

  void session(const Session& session) {
    text_.clear();
    put(R"({{"id":{},"block_size":{},"hash_id_scope":"local","requests":[)", quoted(session.id), session.block_tokens);
    std::int32_t open = -1;
    std::uint32_t next_group = 0;
    bool first = true, first_inner = true;
    for (std::uint32_t i = 0; i < session.requests_count; ++i) {
      const TraceRequest& request = trace_.requests[session.requests_begin + i];
      if (open >= 0 && request.group != open) close_group(open);
      if (request.group >= 0 && request.group != open) {
        // Groups without requests stand before the next one that has some.
        for (; next_group < static_cast<std::uint32_t>(request.group); ++next_group) empty_group(session, next_group, first);
        open_group(session, next_group++, first);
        open = request.group;
        first_inner = true;
      }
      bool& lead = request.group >= 0 ? first_inner : first;
      if (!std::exchange(lead, false)) put(",");
      one(request);
    }
    if (open >= 0) close_group(open);
    for (; next_group < session.groups_count; ++next_group) empty_group(session, next_group, first);
    put("]}}\n");
    output_.write(text_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  void close_group(std::int32_t& open) {
    put("]}}");
    open = -1;
  }
  void open_group(const Session& session, std::uint32_t index, bool& first) {
    const SubagentGroup& group = trace_.groups[session.groups_begin + index];
    if (!std::exchange(first, false)) put(",");
    put(R"({{"t":{},"type":"subagent",)", group.start_s);
    if (!std::isnan(group.duration_s)) put(R"("duration_ms":{},)", group.duration_s * 1e3);
    put(R"("requests":[)");
  }
  void empty_group(const Session& session, std::uint32_t index, bool& first) {
    open_group(session, index, first);
    put("]}}");
  }
  void one(const TraceRequest& request) {
    put(R"({{"t":{},"type":"n",)", request.start_s);
    if (request.model < trace_.models.size()) put(R"("model":{},)", quoted(trace_.models[request.model]));
    put(R"("in":{},"out":{},)", request.input_tokens, request.output_tokens);
    if (std::isnan(request.api_time_s)) put(R"("api_time":null,)");
    else put(R"("api_time":{},)", request.api_time_s);
    if (!std::isnan(request.think_time_s)) put(R"("think_time":{},)", request.think_time_s);
    put(R"("hash_runs":[)");
    bool first = true;
    for (const HashRun& run : trace_.runs_of(request)) put("{}[{},{}]", std::exchange(first, false) ? "" : ",", run.first, run.count);
    put("]}}");
  }

  const Trace& trace_;
  Output& output_;
  fmt::memory_buffer text_;
};

}  // namespace

void write_weka(const Trace& trace, const std::string& path) {
  if (trace.block_ids_global) throw UserError(trace.source, 0, 0, "", "its block ids are shared by all rows; agent sessions cannot say that");
  Output output(path);
  Writer writer(trace, output);
  for (const Session& session : trace.sessions) writer.session(session);
  output.close();
}

}  // namespace rackcast
