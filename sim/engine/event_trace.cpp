#include "sim/engine/event_trace.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/error.hpp"
#include "sim/engine/request.hpp"

namespace rackcast {

namespace {

constexpr std::uint32_t requests_process = 1, movements_process = 2, rack_process = 3, first_engine_process = 10;
constexpr std::size_t room_for_the_end = 8192;  // the longest event and what closes the file
constexpr const char* movement_names[] = {"KV hand-over", "KV from host memory"};

double us(double seconds) { return seconds * 1e6; }

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 1000)) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += {'\\', c};
    else if (code < 0x20) out += fmt::format("\\u{:04x}", code);
    else out += c;
  }
  return out;
}

}  // namespace

EventTrace::EventTrace(const EventTraceOptions& options, std::vector<std::string> engine_names)
    : options_(options), file_(options.path), names_(std::move(engine_names)), from_s_(std::numeric_limits<double>::infinity()), to_s_(from_s_) {
  if (!(options.from_s >= 0) || !(options.to_s > options.from_s))
    throw UserError("--timeline-window: must be FROM:TO in seconds of the measured window, 0 <= FROM < TO");
}

bool EventTrace::room() {
  if (truncated_) return false;
  if (file_.bytes() + room_for_the_end < options_.limit_bytes) {
    fmt::format_to(std::back_inserter(file_.text()), "{}", first_ ? "\n" : ",\n");
    first_ = false;
    file_.flush_if_large();
    return true;
  }
  truncated_ = true;
  fmt::format_to(std::back_inserter(file_.text()), ",\n{{\"ph\":\"i\",\"s\":\"g\",\"pid\":{},\"tid\":1,\"ts\":{:.3f},\"name\":\"the limit of {} bytes is reached: nothing more is recorded\"}}",
                 rack_process, us(last_s_), options_.limit_bytes);
  return false;
}

void EventTrace::name_process(std::uint32_t process, const std::string& name, const char* thread) {
  if (!room()) return;
  fmt::format_to(std::back_inserter(file_.text()),
                 "{{\"ph\":\"M\",\"pid\":{0},\"tid\":1,\"name\":\"process_name\",\"args\":{{\"name\":\"{1}\"}}}},\n"
                 "{{\"ph\":\"M\",\"pid\":{0},\"tid\":1,\"name\":\"process_sort_index\",\"args\":{{\"sort_index\":{0}}}}},\n"
                 "{{\"ph\":\"M\",\"pid\":{0},\"tid\":1,\"name\":\"thread_name\",\"args\":{{\"name\":\"{2}\"}}}}",
                 process, escaped(name), thread);
}

void EventTrace::started(const RunLayout& layout) {
  fmt::format_to(std::back_inserter(file_.text()), "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  name_process(requests_process, "requests", "requests");
  name_process(movements_process, "KV movements", "KV movements");
  name_process(rack_process, "rack", "events");
  for (std::size_t e = 0; e < layout.engines.size(); ++e) {
    const RunLayout::Engine& engine = layout.engines[e];
    name_process(first_engine_process + static_cast<std::uint32_t>(e), fmt::format("{}, GPUs {} to {}", names_[e], engine.first_gpu, engine.first_gpu + engine.gpus - 1), "iterations");
  }
}

void EventTrace::window_opened(double time_s) {
  from_s_ = time_s + options_.from_s;
  to_s_ = time_s + options_.to_s;
}

void EventTrace::stepped(const StepEvent& step) {
  if (!inside(step.start_s, step.end_s)) return;
  last_s_ = step.end_s;
  const std::uint32_t process = first_engine_process + step.engine;
  const char* name = step.prefill_tokens > 0 ? (step.decode_requests > 0 ? "mixed step" : "prefill step") : step.decode_requests > 0 ? "decode step" : "posting";
  if (!room()) return;
  fmt::format_to(std::back_inserter(file_.text()),
                 "{{\"ph\":\"X\",\"pid\":{},\"tid\":1,\"ts\":{:.3f},\"dur\":{:.3f},\"name\":\"{}\",\"args\":{{\"prefill_tokens\":{:.0f},"
                 "\"prefill_requests\":{:.0f},\"decode_requests\":{:.0f},\"decode_context\":{:.0f}}}}}",
                 process, us(step.start_s), us(step.end_s - step.start_s), name, step.prefill_tokens, step.prefill_requests, step.decode_requests, step.decode_context);
  if (!room()) return;
  fmt::format_to(std::back_inserter(file_.text()), "{{\"ph\":\"C\",\"pid\":{},\"tid\":1,\"ts\":{:.3f},\"name\":\"requests\",\"args\":{{\"running\":{},\"waiting\":{}}}}}",
                 process, us(step.start_s), step.running, step.waiting);
}

void EventTrace::begin(const char* category, std::uint64_t id, std::uint32_t process, const char* name, double time_s, const std::string& arguments) {
  fmt::format_to(std::back_inserter(file_.text()), "{{\"ph\":\"b\",\"cat\":\"{}\",\"id\":\"{:#x}\",\"pid\":{},\"tid\":1,\"ts\":{:.3f},\"name\":\"{}\"{}}}",
                 category, id, process, us(time_s), name, arguments.empty() ? "" : ",\"args\":{" + arguments + "}");
}

void EventTrace::end(const char* category, std::uint64_t id, std::uint32_t process, const char* name, double time_s) {
  fmt::format_to(std::back_inserter(file_.text()), ",\n{{\"ph\":\"e\",\"cat\":\"{}\",\"id\":\"{:#x}\",\"pid\":{},\"tid\":1,\"ts\":{:.3f},\"name\":\"{}\"}}",
                 category, id, process, us(time_s), name);
}

void EventTrace::moved(const MovementEvent& m) {
  if (!inside(m.start_s, m.end_s)) return;
  last_s_ = m.end_s;
  if (!room()) return;
  const char* name = movement_names[static_cast<std::size_t>(m.kind)];
  const std::uint64_t id = ++movements_;
  begin("movement", id, movements_process, name, m.start_s,
        fmt::format("\"request\":{},\"bytes\":{:.0f},\"from_gpu\":{},\"to_gpu\":{}", m.request, m.bytes, m.from_gpu, m.to_gpu));
  end("movement", id, movements_process, name, m.end_s);
}

// A request and, unless it was put back, its phases inside it; of an unfinished one those that have begun.
void EventTrace::add_request(const Request& r, double time_s, bool finished) {
  if (!inside(r.arrival_s, time_s)) return;
  last_s_ = time_s;
  if (!room()) return;
  const std::uint64_t id = r.ask.id;
  begin("request", id, requests_process, "request", r.arrival_s,
        fmt::format("\"lane\":{},\"play\":{},\"stream\":{},\"input_tokens\":{},\"output_tokens\":{},\"found_in_hbm\":{},\"found_in_host_memory\":{},"
                    "\"prefill\":\"{} rank {}\",\"decode\":\"{}\",\"put_back\":{},\"finished\":{}",
                    r.ask.lane, r.ask.play, r.ask.stream, r.ask.input_tokens, r.answer_tokens, r.hit_gpu_tokens, r.hit_host_tokens,
                    names_[r.prefill_engine], r.prefill_rank,
                    finished || r.decode_reserved || r.first_token_s != not_yet_s ? fmt::format("{} rank {}", names_[r.decode_engine], r.decode_rank) : "",
                    r.preemptions, finished));
  const auto phase = [&](const char* name, double from_s, double until_s) {
    if (!(until_s > from_s)) return;
    fmt::format_to(std::back_inserter(file_.text()), ",\n");
    begin("request", id, requests_process, name, from_s);
    end("request", id, requests_process, name, until_s);
  };
  if (r.preemptions == 0 && r.retries == 0) {
    const double admitted_s = r.admitted ? r.admitted_s : time_s, prompt_done_s = r.prompt_done_s > 0 ? r.prompt_done_s : time_s;
    const double first_token_s = r.first_token_s == not_yet_s ? time_s : r.first_token_s;
    phase("queue", r.arrival_s, admitted_s);
    phase("prompt", admitted_s, prompt_done_s);
    phase("hand-over", prompt_done_s, first_token_s);
    phase("answer", first_token_s, time_s);
  }
  end("request", id, requests_process, "request", time_s);
}

void EventTrace::noted(const NoteEvent& note) {
  if (!inside(note.start_s, note.end_s)) return;
  last_s_ = note.end_s;
  if (!room()) return;
  const bool whole = note.engine == NoteEvent::whole_rack;
  const std::uint32_t process = whole ? rack_process : first_engine_process + note.engine;
  const std::string name = escaped(note.name), detail = fmt::format("\"detail\":\"{}\"", escaped(note.detail));
  // Not a slice: it may overlap iterations, and slices of one thread must nest.
  if (note.end_s > note.start_s) {
    const std::uint64_t id = ++movements_;
    begin("event", id, process, name.c_str(), note.start_s, detail);
    end("event", id, process, name.c_str(), note.end_s);
  } else {
    fmt::format_to(std::back_inserter(file_.text()), "{{\"ph\":\"i\",\"s\":\"{}\",\"pid\":{},\"tid\":1,\"ts\":{:.3f},\"name\":\"{}\",\"args\":{{{}}}}}", whole ? "g" : "p",
                   process, us(note.start_s), name, detail);
  }
}

void EventTrace::close() {
  fmt::format_to(std::back_inserter(file_.text()), "\n]}}\n");
  file_.close();
}

}  // namespace rackcast
