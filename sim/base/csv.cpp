#include "sim/base/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>

#include "sim/base/error.hpp"
#include "sim/base/input.hpp"

namespace rackcast {

namespace {

// Splits one record that starts at text[at]; advances at and line past it.
std::vector<std::string> record(const std::string& file, std::string_view text, std::size_t& at, int& line) {
  std::vector<std::string> cells(1);
  const int first_line = line;
  bool quoted = false;
  while (at < text.size()) {
    const char c = text[at++];
    if (c == '\0') throw UserError(file, line, 0, "", "a NUL byte; is this a text file?");
    if (quoted) {
      if (c == '\n') ++line;
      if (c != '"') {
        cells.back() += c;
      } else if (at < text.size() && text[at] == '"') {
        cells.back() += '"';
        ++at;
      } else {
        quoted = false;
      }
    } else if (c == '"' && cells.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      cells.emplace_back();
    } else if (c == '\n') {
      ++line;
      return cells;
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  if (quoted) throw UserError(file, first_line, 0, "", "a quote is opened here and never closed");
  return cells;
}

}  // namespace

CsvTable CsvTable::parse(std::string file, std::string_view text) {
  CsvTable table;
  table.file_ = std::move(file);
  if (text.size() > max_bytes) throw UserError(table.file_, 0, 0, "", "larger than 256 MiB");
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::size_t at = 0;
  int line = 1;
  if (!text.empty()) table.columns_ = record(table.file_, text, at, line);
  if (table.columns_.empty() || (table.columns_.size() == 1 && table.columns_[0].empty()))
    throw UserError(table.file_, 1, 0, "", "no header row");
  for (std::size_t i = 0; i < table.columns_.size(); ++i)
    if (std::find(table.columns_.begin(), table.columns_.begin() + static_cast<std::ptrdiff_t>(i), table.columns_[i]) !=
        table.columns_.begin() + static_cast<std::ptrdiff_t>(i))
      throw UserError(table.file_, 1, 0, table.columns_[i], "the column appears twice");
  while (at < text.size()) {
    const int row_line = line;
    std::vector<std::string> cells = record(table.file_, text, at, line);
    if (cells.size() == 1 && cells[0].empty()) continue;  // blank line
    if (cells.size() != table.columns_.size())
      throw UserError(table.file_, row_line, 0, "", fmt::format("{} cells, the header has {} columns", cells.size(), table.columns_.size()));
    table.lines_.push_back(row_line);
    std::move(cells.begin(), cells.end(), std::back_inserter(table.cells_));
  }
  return table;
}

CsvTable CsvTable::read(const std::string& path) {
  check_input_path(path);
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UserError(path, 0, 0, "", "cannot be opened");
  std::string text;
  in.seekg(0, std::ios::end);
  const auto size = in.tellg();
  if (size < 0 || static_cast<std::size_t>(size) > max_bytes) throw UserError(path, 0, 0, "", "not a regular file of at most 256 MiB");
  in.seekg(0);
  text.resize(static_cast<std::size_t>(size));
  in.read(text.data(), size);
  if (in.gcount() != size) throw UserError(path, 0, 0, "", "could not be read to its end");
  return parse(path, text);
}

std::optional<std::size_t> CsvTable::find(std::string_view column) const {
  const auto it = std::find(columns_.begin(), columns_.end(), column);
  if (it == columns_.end()) return std::nullopt;
  return static_cast<std::size_t>(it - columns_.begin());
}

const std::string& CsvTable::text(std::size_t row, std::string_view column) const {
  static const std::string none;
  const auto index = find(column);
  return index ? cells_[row * columns_.size() + *index] : none;
}

std::optional<double> CsvTable::number(std::size_t row, std::string_view column) const {
  const std::string& cell = text(row, column);
  if (cell.empty()) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value))
    throw UserError(file_, line(row), 0, std::string(column), fmt::format("'{}' is not a number", cell.substr(0, 60)));
  return value;
}

std::optional<int> CsvTable::integer(std::size_t row, std::string_view column) const {
  const auto value = number(row, column);
  if (!value) return std::nullopt;
  if (*value != std::floor(*value) || std::abs(*value) > 2e9)
    throw UserError(file_, line(row), 0, std::string(column), fmt::format("{} is not a whole number of at most 2e9", *value));
  return static_cast<int>(*value);
}

void CsvTable::require(const std::vector<std::string>& columns) const {
  for (const std::string& column : columns)
    if (!has(column)) throw UserError(file_, 1, 0, column, "the column is missing");
}

}  // namespace rackcast
