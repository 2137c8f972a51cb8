// Columns for people: left-aligned text, right-aligned numbers, two blanks between.
#pragma once
#include <string>
#include <vector>

namespace rackcast {

class TextTable {
 public:
  // A header that starts with '>' is a right-aligned column.
  explicit TextTable(std::vector<std::string> header);
  void add(std::vector<std::string> row);  // as many cells as the header
  std::string text() const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace rackcast
