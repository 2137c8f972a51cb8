// Conditions such as "prefill.engines * prefill.dep + decode.dep <= rack.gpus and eplb.policy != 'none'".
//   or, and, not   < <= > >= == !=   + - * / %   unary -   ( )   min max abs floor ceil sqrt log exp
// Values are numbers and texts; texts know only == and !=. Numbers take K and M (1024-based). Quantities stand in base
// units (s, bytes, USD, J). Nothing else exists: no assignment, no loop, no call into the program.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rackcast {

using ExpressionValue = std::variant<double, std::string>;

class Expression {
 public:
  // UserError "column N: ..." when it is none.
  static Expression parse(std::string_view text);
  // Truth of the whole: a number that is not 0. lookup gives a name's value or throws UserError.
  ExpressionValue value(const std::function<ExpressionValue(std::string_view name)>& lookup) const;
  bool holds(const std::function<ExpressionValue(std::string_view name)>& lookup) const;
  const std::string& text() const { return text_; }
  const std::vector<std::string>& names() const { return names_; }  // each once, in order of appearance

 private:
  friend class ExpressionParser;
  // Postfix: operands push, operators pop. `skip`: for and/or, where to go on when the left side decides.
  struct Step {
    enum class Kind { number, text, name, unary, binary, call, decide_and, decide_or, truth } kind;
    std::string word;      // text, name, operator or function
    double number = 0;
    std::size_t count = 0;  // arguments of a call; target of a jump
    std::size_t column = 0;
  };
  std::string text_;
  std::vector<Step> steps_;
  std::vector<std::string> names_;
};

}  // namespace rackcast
