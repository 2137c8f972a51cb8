#include "analysis/report_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/base/error.hpp"

namespace rackcast {

using Json = nlohmann::ordered_json;

namespace {

constexpr const char* placeholder = "{{REPORT_DATA}}";
constexpr std::size_t packed_from = 500;   // rows
constexpr std::size_t failed_told = 1000;
constexpr const char* program_version = RACKCAST_VERSION;

// Six significant digits: what a chart can show, a third of the bytes.
Json rounded(const Json& value) {
  if (!value.is_number_float()) return value;
  const double v = value.get<double>();
  if (v != v || v - v != 0) return nullptr;
  return std::stod(fmt::format("{:.6g}", v));
}

// Little-endian 32-bit floats as base64, NaN for none: seven digits in 5.3 bytes, and no digits to read.
std::string packed(const std::vector<Json>& values) {
  std::string bytes;
  bytes.reserve(values.size() * 4);
  for (const Json& v : values) {
    const auto bits = std::bit_cast<std::uint32_t>(v.is_number() ? v.get<float>() : std::numeric_limits<float>::quiet_NaN());
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((bits >> shift) & 0xff);
  }
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve(bytes.size() * 4 / 3 + 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < left ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) text += k <= left ? digits[(group >> (18 - 6 * k)) & 63] : '=';
  }
  return text;
}

std::string shown(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

void flatten(const Json& value, const std::string& path, std::map<std::string, Json>& out) {
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) flatten(inner, path.empty() ? key : path + "." + key, out);
  } else if (value.is_array()) {
    out[path] = value.dump();
  } else {
    out[path] = value;
  }
}

// One column; text is coded by a dictionary.
Json column(const std::string& key, const char* role, const std::vector<Json>& values) {
  Json result{{"key", key}, {"role", role}};
  bool text = false;
  for (const Json& v : values) text = text || v.is_string() || v.is_boolean();
  if (!text) {
    bool fractions = false;
    for (const Json& v : values) fractions = fractions || (v.is_number_float() && v.get<double>() != std::floor(v.get<double>()));
    if (fractions && values.size() >= packed_from) {
      result["packed"] = packed(values);
      return result;
    }
    Json list = Json::array();
    for (const Json& v : values) list.push_back(rounded(v));
    result["values"] = std::move(list);
    return result;
  }
  std::map<std::string, int> codes;
  Json dict = Json::array(), list = Json::array();
  for (const Json& v : values) {
    if (v.is_null()) {
      list.push_back(-1);
      continue;
    }
    const auto [it, fresh] = codes.emplace(shown(v), static_cast<int>(codes.size()));
    if (fresh) dict.push_back(it->first);
    list.push_back(it->second);
  }
  result["dict"] = std::move(dict);
  result["codes"] = std::move(list);
  return result;
}

using Rows = std::vector<std::map<std::string, Json>>;

// Every key of any row, in order of first appearance in the sorted maps.
std::set<std::string> keys_of(const Rows& rows) {
  std::set<std::string> keys;
  for (const auto& row : rows)
    for (const auto& [key, value] : row) keys.insert(key);
  return keys;
}

std::vector<Json> values_of(const Rows& rows, const std::string& key) {
  std::vector<Json> values;
  values.reserve(rows.size());
  for (const auto& row : rows) {
    const auto it = row.find(key);
    values.push_back(it == row.end() ? Json(nullptr) : it->second);
  }
  return values;
}

bool all_equal(const std::vector<Json>& values) {
  for (const Json& v : values)
    if (v != values.front()) return false;
  return true;
}

Rows parsed(const std::vector<const StoredResult*>& results, std::string StoredResult::*member) {
  Rows rows;
  for (const StoredResult* result : results) {
    std::map<std::string, Json>& row = rows.emplace_back();
    const Json value = Json::parse(result->*member, nullptr, false);
    if (!value.is_discarded()) flatten(value, "", row);
  }
  return rows;
}

}  // namespace

Json report_sweep(const std::string& name, const std::vector<StoredResult>& results) {
  std::vector<const StoredResult*> done;
  Json failed = Json::array();
  std::size_t failures = 0;
  for (const StoredResult& result : results) {
    if (result.status == "done") done.push_back(&result);
    else if (++failures <= failed_told) failed.push_back({{"deployment", result.name.empty() ? result.parameters : result.name}, {"reason", result.error}});
  }
  const Rows parameters = parsed(done, &StoredResult::parameters), deployments = parsed(done, &StoredResult::deployment),
             metrics = parsed(done, &StoredResult::metrics);
  Json columns = Json::array(), constants = Json::object();
  const std::set<std::string> axes = keys_of(parameters);
  for (const std::string& key : axes) {
    const std::vector<Json> values = values_of(parameters, key);
    if (done.size() > 1 && all_equal(values)) constants[key] = shown(values.front());
    else columns.push_back(column(key, key == "name" ? "scenario" : "axis", values));  // names differ, but are no axis
  }
  for (const std::string& key : keys_of(deployments)) {
    const std::vector<Json> values = values_of(deployments, key);
    if (axes.count(key) || axes.count("deployment." + key)) continue;
    if (done.size() > 1 && all_equal(values)) constants[key] = shown(values.front());
    else columns.push_back(column(key, "scenario", values));
  }
  for (const std::string& key : keys_of(metrics)) columns.push_back(column(key, "metric", values_of(metrics, key)));
  return {{"name", name}, {"constants", constants}, {"columns", columns}, {"failed", failed}, {"failed_count", failures}};
}

Json report_data(const std::string& title, const Json& parts) {
  Json data{{"schema", 1}, {"title", title}, {"version", program_version}};
  for (const auto& [key, value] : parts.items()) data[key] = value;
  return data;
}

std::string report_page(const std::string& page_template, const Json& data) {
  const auto at = page_template.find(placeholder);
  if (at == std::string::npos) throw UserError("the report's page template has no place for data; reinstall rackcast");
  const std::string json = data.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(json.size() + 64);
  for (const char c : json) {
    if (c == '<') safe += "\\u003c";
    else if (c == '>') safe += "\\u003e";
    else if (c == '&') safe += "\\u0026";
    else safe += c;
  }
  return page_template.substr(0, at) + safe + page_template.substr(at + std::string(placeholder).size());
}

}  // namespace rackcast
