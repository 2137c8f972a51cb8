// make_store FROM.sqlite TO.sqlite ROWS|hostile: a store for tests of the report, written by the store's own code.
// ROWS: that many rows made from the done rows of FROM by changing four axes and scaling every metric.
// hostile: the rows of FROM with names, axes and reasons that try to be markup, script or formulas.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "analysis/store.hpp"

using Json = nlohmann::ordered_json;
using rackcast::Store;
using rackcast::StoredResult;

namespace {

const char* const hostile_texts[] = {"<img src=x onerror=\"window.hacked=1\">", "</script><script>window.hacked=1</script>", "\"quotes\" 'and' `ticks`",
                                     "\xF0\x9F\x98\x80 emoji \xE2\x80\xAE turned round", "=HYPERLINK(\"http://x.invalid\")", "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D & <!-- -->"};
constexpr int hostile_count = 6;

void make_many(const std::vector<StoredResult>& from, Store& to, int rows) {
  constexpr int widths[] = {8, 16, 24, 32};
  for (int i = 0; i < rows; ++i) {
    StoredResult row = from[static_cast<std::size_t>(i) % from.size()];
    const int engines = 1 + i % 10, width = widths[i / 10 % 4], lanes = 64 * (1 + i / 40 % 25), drafts = i / 1000 % 10;
    row.key = fmt::format("{:032x}", i);
    row.position = i;
    row.name = fmt::format("prefill.engines={} decode.dep={} concurrency={} draft_tokens={}", engines, width, lanes, drafts);
    Json parameters = Json::parse(row.parameters), metrics = Json::parse(row.metrics);
    parameters["name"] = row.name;
    parameters["deployment.prefill.engines"] = engines;
    parameters["deployment.decode.dep"] = width;
    parameters["workload.concurrency"] = lanes;
    parameters["deployment.speculation.draft_tokens"] = drafts;
    const double load = lanes / (40.0 * engines + 8.0 * width), bend = 1 + 0.07 * std::sin(i * 0.37);
    for (auto& [name, value] : metrics.items())
      if (value.is_number_float()) value = value.get<double>() * bend * (name.find("tok_s_user") != std::string::npos ? 1 / (0.3 + load) : load / (0.5 + load));
    row.parameters = parameters.dump();
    row.metrics = metrics.dump();
    to.put(row);
  }
}

void make_hostile(const std::vector<StoredResult>& from, Store& to) {
  int i = 0;
  for (StoredResult row : from) {
    const std::string text = hostile_texts[i % hostile_count];
    row.key = fmt::format("{:032x}", i);
    row.name = text;
    Json parameters = Json::parse(row.parameters);
    parameters["name"] = text;
    parameters["<b>axis</b>"] = text;
    row.parameters = parameters.dump();
    if (i % 5 == 4) {
      row.status = "refused";
      row.error = "<svg onload=\"window.hacked=1\">";
      row.metrics = "{}";
    }
    to.put(row);
    ++i;
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    fmt::print(stderr, "usage: make_store FROM.sqlite TO.sqlite ROWS|hostile\n");
    return 2;
  }
  std::vector<StoredResult> from;
  for (StoredResult& row : Store(arguments[1], Store::Mode::read).all())
    if (row.status == "done") from.push_back(std::move(row));
  Store to(arguments[2], Store::Mode::write);
  if (std::string(arguments[3]) == "hostile") make_hostile(from, to);
  else make_many(from, to, std::atoi(arguments[3]));
  return 0;
}
