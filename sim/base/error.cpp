#include "sim/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace rackcast {

std::string Problem::text() const {
  std::string where = file;
  if (line > 0) where += fmt::format(":{}", line);
  if (line > 0 && column > 0) where += fmt::format(":{}", column);
  if (!where.empty()) where += ": ";
  return key.empty() ? where + rule : fmt::format("{}{}: {}", where, key, rule);
}

static std::string join(const std::vector<Problem>& problems) {
  std::string all;
  for (const auto& problem : problems) {
    if (!all.empty()) all += '\n';
    all += problem.text();
  }
  return all;
}

UserError::UserError(std::vector<Problem> problems) : std::runtime_error(join(problems)), problems_(std::move(problems)) {}
UserError::UserError(const std::string& rule) : UserError(std::vector<Problem>{Problem{"", 0, 0, "", rule}}) {}
UserError::UserError(const std::string& file, int line, int column, const std::string& key, const std::string& rule)
    : UserError(std::vector<Problem>{Problem{file, line, column, key, rule}}) {}

void check_failed(const char* condition, const char* file, int line, const std::string& what) {
  throw InternalError(fmt::format("{}:{}: internal check failed: {} ({})", file, line, what, condition));
}

void Diagnostics::throw_if_any() {
  if (problems_.empty()) return;
  std::sort(problems_.begin(), problems_.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.file, a.line, a.column, a.key, a.rule) < std::tie(b.file, b.line, b.column, b.key, b.rule);
  });
  constexpr std::size_t shown = 100;
  if (problems_.size() > shown) {
    const std::size_t hidden = problems_.size() - shown;
    problems_.resize(shown);
    problems_.push_back({problems_.back().file, 0, 0, "", fmt::format("has {} more problems", hidden)});
  }
  throw UserError(problems_);
}

}  // namespace rackcast
