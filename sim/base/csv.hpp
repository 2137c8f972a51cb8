// Comma-separated tables with a header row (RFC 4180: quotes, embedded commas and newlines). The whole file is read at
// once, bounded; every cell knows its line, so that a bad value is reported as file:line: column: rule.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rackcast {

class CsvTable {
 public:
  static constexpr std::size_t max_bytes = std::size_t{256} << 20;

  // UserError: not readable, no header, duplicate column, a row with another number of cells, an open quote.
  static CsvTable parse(std::string file, std::string_view text);
  static CsvTable read(const std::string& path);

  const std::string& file() const { return file_; }
  std::size_t rows() const { return lines_.size(); }
  int line(std::size_t row) const { return lines_[row]; }
  bool has(std::string_view column) const { return find(column).has_value(); }
  const std::vector<std::string>& columns() const { return columns_; }

  // Empty when the column is absent: tables of different ages lack columns.
  const std::string& text(std::size_t row, std::string_view column) const;
  // nullopt for an empty cell or absent column; UserError for text that is not a finite number.
  std::optional<double> number(std::size_t row, std::string_view column) const;
  std::optional<int> integer(std::size_t row, std::string_view column) const;
  // UserError when any of the columns is absent.
  void require(const std::vector<std::string>& columns) const;

 private:
  std::optional<std::size_t> find(std::string_view column) const;

  std::string file_;
  std::vector<std::string> columns_;
  std::vector<int> lines_;
  std::vector<std::string> cells_;  // row-major
};

}  // namespace rackcast
