#include "sim/base/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "sim/base/error.hpp"
#include "sim/base/text.hpp"

namespace rackcast {
namespace {

constexpr std::size_t max_length = 4096;
constexpr int max_depth = 64;
const std::vector<std::string> functions = {"min", "max", "abs", "floor", "ceil", "sqrt", "log", "exp"};

[[noreturn]] void fail(std::size_t column, const std::string& what) {
  throw UserError(fmt::format("column {}: {}", column, what));
}

bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_name(char c) { return starts_name(c) || (c >= '0' && c <= '9') || c == '.' || c == '[' || c == ']' || c == '"'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

// Recursive descent, one function a level of precedence.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {
    if (text.size() > max_length) fail(max_length, "the expression is too long");
    result_.text_ = std::string(text);
    next();
  }

  Expression run() {
    if (kind_ == Kind::end) fail(1, "the expression is empty");
    either();
    if (kind_ != Kind::end) fail(column_, fmt::format("{} is not expected here", shown()));
    return std::move(result_);
  }

 private:
  enum class Kind { end, number, text, name, symbol };
  using Step = Expression::Step;

  void next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
    column_ = at_ + 1;
    const std::size_t start = at_;
    if (at_ == text_.size()) {
      kind_ = Kind::end;
      word_.clear();
      return;
    }
    const char c = text_[at_];
    if (is_digit(c)) return number();
    if (c == '\'' || c == '"') return quoted(c);
    if (starts_name(c)) {
      while (at_ < text_.size() && in_name(text_[at_])) ++at_;
      kind_ = Kind::name;
    } else {
      kind_ = Kind::symbol;
      ++at_;
      constexpr std::string_view single = "+-*/%(),<>";
      if (at_ < text_.size() && text_[at_] == '=' && (c == '<' || c == '>' || c == '=' || c == '!')) ++at_;
      else if (single.find(c) == std::string_view::npos)
        fail(column_, c == '=' ? "write == to compare" : fmt::format("{} is not expected here", quote_input(text_.substr(start, 1))));
    }
    word_ = std::string(text_.substr(start, at_ - start));
  }

  void number() {
    const std::size_t start = at_;
    while (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    }
    const Parsed<double> parsed = parse_double(text_.substr(start, at_ - start));
    if (!parsed) fail(column_, fmt::format("{} {}", quote_input(text_.substr(start, at_ - start)), parsed.error));
    number_ = parsed.value;
    if (at_ < text_.size() && text_[at_] == 'K') number_ *= 1024, ++at_;
    else if (at_ < text_.size() && text_[at_] == 'M') number_ *= 1024 * 1024, ++at_;
    if (at_ < text_.size() && in_name(text_[at_])) fail(at_ + 1, "a number may end in K or M; units are not written here (base units: s, bytes, USD, J)");
    kind_ = Kind::number;
    word_ = std::string(text_.substr(start, at_ - start));
  }

  void quoted(char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail(column_, "the text has no closing quote");
    word_ = std::string(text_.substr(at_ + 1, end - at_ - 1));
    kind_ = Kind::text;
    at_ = end + 1;
  }

  bool is_word(std::string_view word) const { return kind_ == Kind::name && word_ == word; }
  bool is_symbol(std::string_view symbol) const { return kind_ == Kind::symbol && word_ == symbol; }
  std::string shown() const { return kind_ == Kind::end ? "the end" : quote_input(word_); }
  void expect(std::string_view symbol) {
    if (!is_symbol(symbol)) fail(column_, fmt::format("'{}' is missing before {}", symbol, shown()));
    next();
  }
  void push(Step::Kind kind, std::string word, std::size_t column, double number = 0, std::size_t count = 0) {
    result_.steps_.push_back({kind, std::move(word), number, count, column});
  }

  void logical(std::string_view word, Step::Kind decide, void (ExpressionParser::*side)()) {
    (this->*side)();
    while (is_word(word)) {
      const std::size_t column = column_, jump = result_.steps_.size();
      push(decide, std::string(word), column);
      next();
      (this->*side)();
      push(Step::Kind::truth, std::string(word), column);
      result_.steps_[jump].count = result_.steps_.size();
    }
  }
  void either() {
    if (++depth_ > max_depth) fail(column_, "too many brackets inside each other");
    logical("or", Step::Kind::decide_or, &ExpressionParser::both);
    --depth_;
  }
  void both() { logical("and", Step::Kind::decide_and, &ExpressionParser::negation); }
  void negation() {
    std::size_t times = 0, column = column_;
    for (; is_word("not"); next()) ++times;
    comparison();
    for (; times > 0; --times) push(Step::Kind::unary, "not", column);
  }
  void comparison() {
    sum();
    const auto compares = [&] { return kind_ == Kind::symbol && (word_[0] == '<' || word_[0] == '>' || word_ == "==" || word_ == "!="); };
    if (!compares()) return;
    const std::string word = word_;
    const std::size_t column = column_;
    next();
    sum();
    push(Step::Kind::binary, word, column);
    if (compares()) fail(column_, "write 'a < b and b < c' instead of a chain");
  }
  void sum() { left_to_right("+-", &ExpressionParser::product); }
  void product() { left_to_right("*/%", &ExpressionParser::sign); }
  void left_to_right(std::string_view symbols, void (ExpressionParser::*side)()) {
    (this->*side)();
    while (kind_ == Kind::symbol && word_.size() == 1 && symbols.find(word_[0]) != std::string_view::npos) {
      const std::string word = word_;
      const std::size_t column = column_;
      next();
      (this->*side)();
      push(Step::Kind::binary, word, column);
    }
  }
  void sign() {
    std::size_t times = 0, column = column_;
    for (; is_symbol("-"); next()) ++times;
    atom();
    if (times % 2 == 1) push(Step::Kind::unary, "-", column);
  }

  void atom() {
    const std::size_t column = column_;
    const std::string word = word_;
    if (kind_ == Kind::number) {
      push(Step::Kind::number, word, column, number_);
      next();
    } else if (kind_ == Kind::text) {
      push(Step::Kind::text, word, column);
      next();
    } else if (is_symbol("(")) {
      next();
      either();
      expect(")");
    } else if (kind_ == Kind::name && word != "and" && word != "or" && word != "not") {
      next();
      if (is_symbol("(")) return call(word, column);
      if (word == "true" || word == "false") return push(Step::Kind::number, word, column, word == "true" ? 1 : 0);
      push(Step::Kind::name, word, column);
      if (std::find(result_.names_.begin(), result_.names_.end(), word) == result_.names_.end()) result_.names_.push_back(word);
    } else {
      fail(column, fmt::format("a value is missing before {}", shown()));
    }
  }

  void call(const std::string& name, std::size_t column) {
    if (std::find(functions.begin(), functions.end(), name) == functions.end()) {
      const std::string near = near_match(name, functions);
      fail(column, fmt::format("{} is no function{}", quote_input(name), near.empty() ? " (min, max, abs, floor, ceil, sqrt, log, exp are)" : "; " + near));
    }
    next();
    std::size_t count = 1;
    either();
    for (; is_symbol(","); ++count) {
      next();
      either();
    }
    expect(")");
    const bool any_count = name == "min" || name == "max";
    if (!any_count && count != 1) fail(column, fmt::format("{} takes one value", name));
    push(Step::Kind::call, name, column, 0, count);
  }

  std::string_view text_;
  std::size_t at_ = 0, column_ = 1;
  Kind kind_ = Kind::end;
  std::string word_;
  double number_ = 0;
  int depth_ = 0;
  Expression result_;
};

Expression Expression::parse(std::string_view text) { return ExpressionParser(text).run(); }

namespace {

double number_of(const ExpressionValue& value, const std::string& word, std::size_t column) {
  if (const double* number = std::get_if<double>(&value)) return *number;
  fail(column, fmt::format("'{}' needs numbers; {} is a text", word, quote_input(std::get<std::string>(value))));
}

double combine(const std::string& word, double a, double b, std::size_t column) {
  if (word == "+") return a + b;
  if (word == "-") return a - b;
  if (word == "*") return a * b;
  if ((word == "/" || word == "%") && b == 0) fail(column, "divides by 0");
  if (word == "/") return a / b;
  if (word == "%") return std::fmod(a, b);
  if (word == "<") return a < b;
  if (word == "<=") return a <= b;
  if (word == ">") return a > b;
  return a >= b;
}

double call(const std::string& name, std::span<const double> values) {
  if (name == "min") return *std::min_element(values.begin(), values.end());
  if (name == "max") return *std::max_element(values.begin(), values.end());
  const double x = values[0];
  if (name == "abs") return std::abs(x);
  if (name == "floor") return std::floor(x);
  if (name == "ceil") return std::ceil(x);
  if (name == "sqrt") return std::sqrt(x);
  return name == "log" ? std::log(x) : std::exp(x);
}

}  // namespace

ExpressionValue Expression::value(const std::function<ExpressionValue(std::string_view)>& lookup) const {
  std::vector<ExpressionValue> stack;
  const auto take = [&](const Step& step) {
    const double number = number_of(stack.back(), step.word, step.column);
    stack.pop_back();
    return number;
  };
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    switch (step.kind) {
      case Step::Kind::number: stack.emplace_back(step.number); break;
      case Step::Kind::text: stack.emplace_back(step.word); break;
      case Step::Kind::name: stack.push_back(lookup(step.word)); break;
      case Step::Kind::truth: stack.emplace_back(take(step) != 0 ? 1.0 : 0.0); break;
      case Step::Kind::unary: {
        const double x = take(step);
        stack.emplace_back(step.word == "-" ? -x : x == 0 ? 1.0 : 0.0);
        break;
      }
      case Step::Kind::decide_and:
      case Step::Kind::decide_or: {
        const bool left = take(step) != 0;
        if (left == (step.kind == Step::Kind::decide_or)) {
          stack.emplace_back(left ? 1.0 : 0.0);
          i = step.count - 1;
        }
        break;
      }
      case Step::Kind::binary: {
        const ExpressionValue right = std::move(stack.back());
        stack.pop_back();
        if (step.word == "==" || step.word == "!=") {
          if (stack.back().index() != right.index()) fail(step.column, "compares a number with a text");
          const bool equal = stack.back() == right;
          stack.back() = equal == (step.word == "==") ? 1.0 : 0.0;
          break;
        }
        const double b = number_of(right, step.word, step.column), a = take(step);
        stack.emplace_back(combine(step.word, a, b, step.column));
        break;
      }
      case Step::Kind::call: {
        std::vector<double> values(step.count);
        for (std::size_t k = step.count; k-- > 0;) values[k] = take(step);
        stack.emplace_back(call(step.word, values));
        break;
      }
    }
  }
  RACKCAST_CHECK(stack.size() == 1, "an expression leaves one value");
  return stack.back();
}

bool Expression::holds(const std::function<ExpressionValue(std::string_view)>& lookup) const {
  return number_of(value(lookup), "condition", 1) != 0;
}

}  // namespace rackcast
