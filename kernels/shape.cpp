#include "kernels/shape.hpp"

#include <set>

#include "sim/base/error.hpp"

namespace rackcast::kernels {

const Shape::Value* Shape::find(std::string_view axis) const {
  for (const Value& value : values_)
    if (value.axis == axis) return &value;
  return nullptr;
}

Shape::Value& Shape::slot(std::string_view axis) {
  for (Value& value : values_)
    if (value.axis == axis) return value;
  values_.push_back({std::string(axis), true, 0, {}});
  return values_.back();
}

Shape& Shape::set(std::string_view axis, std::int64_t number) {
  Value& value = slot(axis);
  value.is_number = true;
  value.number = number;
  value.text.clear();
  return *this;
}

Shape& Shape::set(std::string_view axis, std::string_view text) {
  Value& value = slot(axis);
  value.is_number = false;
  value.number = 0;
  value.text = text;
  return *this;
}

std::int64_t Shape::number(std::string_view axis) const {
  const Value* value = find(axis);
  RACKCAST_CHECK(value && value->is_number, "shape " + key() + " has no number " + std::string(axis));
  return value->number;
}

const std::string& Shape::text(std::string_view axis) const {
  const Value* value = find(axis);
  RACKCAST_CHECK(value && !value->is_number, "shape " + key() + " has no word " + std::string(axis));
  return value->text;
}

std::string Shape::key() const {
  std::string all;
  for (const Value& value : values_) {
    if (!all.empty()) all += ' ';
    all += value.axis + '=' + (value.is_number ? std::to_string(value.number) : value.text);
  }
  return all;
}

std::vector<Shape> unique(std::vector<Shape> shapes) {
  std::set<std::string> seen;
  std::vector<Shape> kept;
  for (Shape& shape : shapes)
    if (seen.insert(shape.key()).second) kept.push_back(std::move(shape));
  return kept;
}

}  // namespace rackcast::kernels
