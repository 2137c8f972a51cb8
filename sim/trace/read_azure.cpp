// Azure LLM inference 2023/2024: CSV of TIMESTAMP (date and time with 100 ns, UTC), ContextTokens, GeneratedTokens. Also
// the same rows with relative seconds (arrived_at, num_prefill_tokens, num_decode_tokens). No block ids.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "sim/trace/formats.hpp"

namespace rackcast {
namespace {

constexpr std::string_view dated_header = "TIMESTAMP,ContextTokens,GeneratedTokens";
constexpr std::string_view relative_header = "arrived_at,num_prefill_tokens,num_decode_tokens";
constexpr std::size_t longest_line = 200;

bool read_line(ByteSource& source, std::string& line) {
  line.clear();
  if (source.peek() == ByteSource::end) return false;
  while (source.peek() != '\n' && source.peek() != ByteSource::end) {
    if (line.size() == longest_line) source.fail("", fmt::format("line is longer than {} characters", longest_line));
    line += static_cast<char>(source.get());
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return true;
}

// Days since 1970-01-01 of a proleptic Gregorian date.
std::int64_t days_of(int year, int month, int day) {
  const int y = month <= 2 ? year - 1 : year;
  const int era = y / 400, of_era = y - era * 400;
  const int day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return std::int64_t{era} * 146097 + std::int64_t{of_era} * 365 + of_era / 4 - of_era / 100 + day_of_year - 719468;
}

template <class Number>
bool parse(std::string_view text, Number& value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size();
}

// "2023-11-16 18:17:03.9799600", optionally with a "+00:00" behind.
bool parse_date(std::string_view text, double& seconds) {
  if (text.size() > 6 && text.ends_with("+00:00")) text.remove_suffix(6);
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') || text[13] != ':' || text[16] != ':')
    return false;
  int year, month, day, hour, minute;
  double second;
  if (!parse(text.substr(0, 4), year) || !parse(text.substr(5, 2), month) || !parse(text.substr(8, 2), day) ||
      !parse(text.substr(11, 2), hour) || !parse(text.substr(14, 2), minute) || !parse(text.substr(17), second))
    return false;
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || hour < 0 || minute > 59 || minute < 0 ||
      !(second >= 0 && second < 61))
    return false;
  // Whole seconds first: a double holds them and the 100 ns apart without loss once the first row is subtracted.
  seconds = static_cast<double>(days_of(year, month, day) * 86400 + std::int64_t{hour} * 3600 + std::int64_t{minute} * 60) + second;
  return true;
}

}  // namespace

bool is_azure(std::string_view head) { return head.starts_with(dated_header) || head.starts_with(relative_header); }

void read_azure(ByteSource& source, TraceBuilder& into) {
  into.trace().block_ids_global = true;  // arrivals of a service, no sessions
  Session& session = into.begin_session();
  session.id = "azure";
  std::string line;
  read_line(source, line);
  const bool dated = line == dated_header;
  double first_s = 0, last_s = 0;
  bool any = false;
  while (source.get() != ByteSource::end && read_line(source, line)) {
    if (line.empty()) continue;
    const std::size_t a = line.find(','), b = a == std::string::npos ? a : line.find(',', a + 1);
    if (b == std::string::npos) source.fail("", "a row has three columns");
    const std::string_view row = line;
    TraceRequest request;
    double time_s = 0;
    if (dated ? !parse_date(row.substr(0, a), time_s) : !parse(row.substr(0, a), time_s) || !std::isfinite(time_s))
      source.fail("TIMESTAMP", fmt::format("'{}' is not a time", row.substr(0, a)));
    if (!parse(row.substr(a + 1, b - a - 1), request.input_tokens) || request.input_tokens > into.limits().tokens_per_request)
      source.fail("ContextTokens", fmt::format("'{}' is not a token count", row.substr(a + 1, b - a - 1)));
    if (!parse(row.substr(b + 1), request.output_tokens) || request.output_tokens > into.limits().tokens_per_request)
      source.fail("GeneratedTokens", fmt::format("'{}' is not a token count", row.substr(b + 1)));
    if (!any) first_s = last_s = time_s;
    any = true;
    if (time_s < last_s) source.fail("TIMESTAMP", "rows must be in order of time");
    if (into.full()) source.fail("", "more requests than fit; split the file");
    last_s = time_s;
    request.start_s = time_s - first_s;
    into.begin_request(request);
    into.add_request(request);
  }
}

}  // namespace rackcast
