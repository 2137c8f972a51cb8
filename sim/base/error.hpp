// What can go wrong and who can fix it. UserError: the user; CHECK: us; Unavailable: neither ("not here").
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

namespace rackcast {

// One problem in one place. line and column are 1-based; 0 means unknown.
struct Problem {
  std::string file;  // path, or the text of a --set
  int line = 0;
  int column = 0;
  std::string key;   // dotted path, may be empty
  std::string rule;  // what is wrong and a way out
  std::string text() const;  // file:line:col: key: rule
};

// The user can fix it. Exit code 2.
class UserError : public std::runtime_error {
 public:
  explicit UserError(std::vector<Problem> problems);
  explicit UserError(const std::string& rule);
  UserError(const std::string& file, int line, int column, const std::string& key, const std::string& rule);
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

// Ran, but missed its bound (SLO, validation bound, deadlock). Exit code 1.
class BoundMissed : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Not possible here (no GPU, no CUDA build, too few GPUs). Exit code 3.
class Unavailable : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Our bug. Exit code 70.
class InternalError : public std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& what);

// Gathers every problem of a file, so that the user sees all at once.
class Diagnostics {
 public:
  void add(Problem problem) { problems_.push_back(std::move(problem)); }
  bool empty() const { return problems_.empty(); }
  const std::vector<Problem>& problems() const { return problems_; }
  // UserError with all of them, in order of file, line and column; of more than 100 the first, and how many there are.
  void throw_if_any();

 private:
  std::vector<Problem> problems_;
};

}  // namespace rackcast

// For our own mistakes only, on in every build; never for user input.
#define RACKCAST_CHECK(condition, what)                                        \
  do {                                                                         \
    if (!(condition)) ::rackcast::check_failed(#condition, __FILE__, __LINE__, what); \
  } while (false)
