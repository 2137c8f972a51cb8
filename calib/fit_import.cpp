#include "calib/fit_import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cctype>
#include <filesystem>

#include "sim/base/error.hpp"

namespace rackcast::calib {

std::span<const CsvImporter> csv_importers() {
  static constexpr CsvImporter table[] = {
      {"kernel points", "family,op,shape,dtype,gpu,ranks,latency_us,source", import_kernel_points},
      {"engine step log", "gpu,requests,gpu_us,wall_us", import_engine_log},
      {"exchange table", "gpu,part,mode,ranks,tokens,hidden,topk,experts,bytes_per_value,latency_us", import_exchange_table},
      {"bench forward", "gpu,model,case,latency_ms", import_bench_forward},
      {"module points", "gpu,op,backend,kernel,dtype,phase,latency_us,source", import_module_points},
  };
  return table;
}

namespace {

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text) {
    if (separators.find(c) == std::string_view::npos) {
      part += c;
    } else if (!part.empty()) {
      parts.push_back(part);
      part.clear();
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

// Leading digits of "4096tok" or of "64h"; npos length if none.
bool leading_number(std::string_view text, double& value, std::string_view& rest) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

ShapeText::ShapeText(std::string_view text) : text_(text) {
  int position = 0;
  for (const std::string& part : split(text, ",; ")) {
    const std::size_t equals = part.find('=');
    double value = 0;
    std::string_view rest;
    if (equals != std::string::npos) {
      const std::string key = part.substr(0, equals), content = part.substr(equals + 1);
      words_[key] = content;
      if (leading_number(content, value, rest)) numbers_[key] = value;
      continue;
    }
    const std::vector<std::string> axes = split(part, "/");
    if (axes.size() >= 3) {  // hidden/intermediate/experts[/topk]
      static constexpr const char* names[] = {"hidden", "inter", "experts", "topk"};
      for (std::size_t i = 0; i < std::min<std::size_t>(axes.size(), 4); ++i) {
        std::string axis = axes[i];
        if (axis.rfind("top", 0) == 0) axis = axis.substr(3);
        if (leading_number(axis, value, rest)) numbers_[names[i]] = value;
      }
    } else if (part.rfind("top", 0) == 0 && leading_number(std::string_view(part).substr(3), value, rest)) {
      numbers_["topk"] = value;
    } else if (leading_number(part, value, rest)) {
      if (rest.empty()) numbers_["#" + std::to_string(position++)] = value;  // "7168" of "128tok,7168,top8"
      else numbers_[std::string(rest)] = value;                              // "128tok/rank" -> tok/rank
    }
  }
}

double ShapeText::number(const std::string& key) const {
  const auto found = numbers_.find(key);
  if (found == numbers_.end()) throw UserError("shape '" + text_ + "' has no " + key);
  return found->second;
}

const std::string& ShapeText::word(const std::string& key) const {
  static const std::string none;
  const auto found = words_.find(key);
  return found == words_.end() ? none : found->second;
}

std::string gpu_name(std::string_view as_written) {
  std::string name;
  for (const char c : as_written) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name.rfind("nvidia ", 0) == 0) name = name.substr(7);
  for (const char* known : {"gb300", "gb200", "b300", "b200", "h200", "h100"}) {
    const std::string gpu = known;
    if (name == gpu || name.rfind(gpu + "_", 0) == 0 || name.rfind(gpu + " ", 0) == 0) return gpu;
  }
  return {};
}

void keep_fastest(std::vector<FitPoint>& points) {
  std::map<std::string, std::size_t> best;  // by everything but time and source
  std::vector<FitPoint> kept;
  for (const FitPoint& p : points) {
    const std::string key = fmt::format("{} {} {} {} {} {} {} {} {}", p.gpu, p.model, p.family, p.flops, p.bytes, p.link_bytes, p.ranks, p.units, p.context);
    const auto [found, fresh] = best.emplace(key, kept.size());
    if (fresh) kept.push_back(p);
    else if (p.time_s < kept[found->second].time_s) kept[found->second] = p;
  }
  points = std::move(kept);
}

Imported import_points(const std::string& path) {
  Imported out;
  const auto ends = [&](std::string_view tail) { return path.size() >= tail.size() && path.compare(path.size() - tail.size(), tail.size(), tail) == 0; };
  if (ends(".jsonl") || ends(".jsonl.gz")) {
    import_measurements(path, out);
    return out;
  }
  if (std::error_code failed; !std::filesystem::is_regular_file(path, failed)) throw UserError(path + ": is not a file that can be read");
  if (!ends(".csv") && is_nccl_tests(path)) {
    import_nccl_tests(path, out);
    return out;
  }
  if (!ends(".csv")) throw UserError(path + ": not a measurement file; .jsonl of rackcast-calib, output of nccl-tests, or a .csv that README.md of calib describes");
  const CsvTable table = CsvTable::read(path);
  for (const CsvImporter& importer : csv_importers()) {
    const std::vector<std::string> wanted = split(importer.columns, ",");
    if (!std::all_of(wanted.begin(), wanted.end(), [&](const std::string& column) { return table.has(column); })) continue;
    importer.read(table, out);
    return out;
  }
  throw UserError(path + ": the header is none of those that calib/README.md describes");
}

}  // namespace rackcast::calib
