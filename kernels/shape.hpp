// One point of a kernel family's grid: axes in a fixed order, each a whole number or a word ("format=v4").
// key() is what makes two measurements the same point, so an axis never changes its meaning, only new ones appear.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rackcast::kernels {

class Shape {
 public:
  struct Value {
    std::string axis;
    bool is_number = true;
    std::int64_t number = 0;
    std::string text;
    bool operator==(const Value&) const = default;
  };

  Shape& set(std::string_view axis, std::int64_t number);  // replaces the axis if it is there, else adds it last
  Shape& set(std::string_view axis, std::string_view text);
  std::int64_t number(std::string_view axis) const;         // CHECK: there and a number
  const std::string& text(std::string_view axis) const;     // CHECK: there and a word
  bool has(std::string_view axis) const { return find(axis) != nullptr; }
  const std::vector<Value>& values() const { return values_; }
  std::string key() const;  // "tokens=1 keys=640 format=v4"
  bool operator==(const Shape&) const = default;

 private:
  const Value* find(std::string_view axis) const;
  Value& slot(std::string_view axis);
  std::vector<Value> values_;
};

// Removes later duplicates; keeps the order of first appearance.
std::vector<Shape> unique(std::vector<Shape> shapes);

}  // namespace rackcast::kernels
