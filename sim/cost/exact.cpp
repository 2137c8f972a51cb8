#include "sim/cost/exact.hpp"

#include <cmath>

#include "sim/base/error.hpp"

namespace rackcast {

namespace {

constexpr int most_rows = 1 << 30;
constexpr std::size_t most_points = 256;
constexpr double largest_ratio = 20;  // farther from the form a point is of something else, or a slip

bool rising(const std::vector<int>& rows) {
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i] <= rows[i - 1]) return false;
  return true;
}

}  // namespace

void fields(Visitor& v, ExactCurve& c) {
  ExactShape& s = c.shape;
  const auto field = [&](const char* key, int& member, const char* doc) { v.field(key, member, doc).require(member >= 0, "must be >= 0"); };
  if (!v.writing() || s.n > 0) {
    field("outputs", s.n, "of a matrix: its columns, after tensor parallelism cut it");
    field("inputs", s.k, "of a matrix: its rows, which are summed over");
  }
  if (!v.writing() || s.hidden > 0) {
    field("hidden", s.hidden, "of a layer of experts: values of a token");
    field("intermediate", s.intermediate, "of a layer of experts: width of an expert");
    field("experts", s.experts, "of a layer of experts: how many there are");
    field("top_k", s.top_k, "of a layer of experts: chosen by a token");
    field("ranks", s.ranks, "of a layer of experts: that they are spread over");
  }
  const bool layer = s.hidden > 0 && s.intermediate > 0 && s.experts > 0 && s.top_k > 0 && s.ranks > 0;
  if (v.clean()) v.rule("", s.n > 0 ? s.k > 0 && s == ExactShape{.n = s.n, .k = s.k} : layer && s.k == 0, "give outputs and inputs, or hidden, intermediate, experts, top_k and ranks");
  v.field("rows", c.rows, "rows that the matrix multiplied, or tokens of each rank, a number a point")
      .require(!c.rows.empty() && c.rows.size() <= most_points, "must hold 1 to 256 numbers")
      .require(rising(c.rows), "must rise")
      .require(std::all_of(c.rows.begin(), c.rows.end(), [](int rows) { return rows > 0 && rows <= most_rows; }), "must be 1 to 1073741824")
      .required();
  v.field("ratio", c.ratio, "measured time / the form's for the same launch, a number a point")
      .require(std::all_of(c.ratio.begin(), c.ratio.end(), [](double r) { return r >= 1 / largest_ratio && r <= largest_ratio; }), "must be 0.05 to 20")
      .require(!v.clean() || c.ratio.size() == c.rows.size(), "must hold as many numbers as rows")
      .required();
  v.choice("basis", c.basis, basis_names, "where the points come from").required();
  v.field("source", c.source, "citation and date").require(!c.source.empty(), "must not be empty").required();
}

void make_isotonic(std::vector<double>& values) {
  struct Block {
    double sum;
    std::size_t count;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Block> blocks;
  for (const double value : values) {
    blocks.push_back({value, 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
      const Block last = blocks.back();
      blocks.pop_back();
      blocks.back().sum += last.sum;
      blocks.back().count += last.count;
    }
  }
  std::size_t i = 0;
  for (const Block& block : blocks)
    for (std::size_t j = 0; j < block.count; ++j) {
      if (block.count > 1) values[i] = block.mean();  // alone: to the last bit what it was
      ++i;
    }
}

ExactTimes::ExactTimes(const ExactCurve& curve, const std::function<double(double)>& form_s, bool bends) : basis_(curve.basis) {
  RACKCAST_CHECK(curve.rows.size() == curve.ratio.size(), "a ratio for each point");
  const std::size_t count = curve.rows.size();
  if (count == 0) return;
  const double reach = std::log(dense_gap);
  std::vector<double> at, form, time;  // logarithms
  for (std::size_t i = 0; i < count; ++i) {
    at.push_back(std::log(curve.rows[i]));
    form.push_back(std::log(form_s(curve.rows[i])));
    time.push_back(form.back() + std::log(curve.ratio[i]));
  }
  make_isotonic(time);
  // The form alone, but never out of order with the points on both sides.
  const auto fade = [&](double log_rows, double low_s, double high_s) {
    add(log_rows, 0, std::clamp(form_s(std::exp(log_rows)), low_s, high_s), 0);
  };
  fade(at[0] - reach, 0, std::exp(time[0]));
  for (std::size_t i = 0; i < count; ++i) {
    const double seconds = std::exp(time[i]);
    add(at[i], time[i] - form[i], seconds, 1);
    if (i + 1 == count) {
      fade(at[i] + reach, seconds, std::max(seconds, form_s(std::exp(at[i] + reach))));
      break;
    }
    const double gap = at[i + 1] - at[i], next_s = std::exp(time[i + 1]);
    if (gap <= reach * (1 + 1e-12)) continue;
    fade(at[i] + std::min(reach, gap / 2), seconds, next_s);
    if (gap > 2 * reach) fade(at[i + 1] - reach, seconds, next_s);
  }
  if (bends) level(form_s);
}

// Between two knots, what was reached is kept.
void ExactTimes::level(const std::function<double(double)>& form_s) {
  constexpr int steps = 32;
  std::vector<Knot> fine = {knots_.front()};
  for (std::size_t i = 1; i < knots_.size(); ++i) {
    const Knot &left = knots_[i - 1], &right = knots_[i];
    for (int step = 1; step < steps; ++step) {
      const double along = double(step) / steps, x = left.log_rows + along * (right.log_rows - left.log_rows), log_ratio = left.log_ratio + along * (right.log_ratio - left.log_ratio);
      fine.push_back({x, log_ratio, std::clamp(form_s(std::exp(x)) * std::exp(log_ratio), fine.back().seconds, right.seconds), left.share + along * (right.share - left.share)});
    }
    fine.push_back(right);
  }
  knots_ = std::move(fine);
}

std::size_t ExactTimes::behind(double log_rows) const {
  return static_cast<std::size_t>(std::upper_bound(knots_.begin(), knots_.end(), log_rows, [](double x, const Knot& knot) { return x < knot.log_rows; }) - knots_.begin());
}

double ExactTimes::seconds(double rows, double form_s) const {
  const double x = std::log(rows);
  const std::size_t i = behind(x);
  if (i == 0) return std::min(form_s, knots_.front().seconds);
  if (i == knots_.size()) return std::max(form_s, knots_.back().seconds);
  const Knot &left = knots_[i - 1], &right = knots_[i];
  const double along = (x - left.log_rows) / (right.log_rows - left.log_rows);
  return std::clamp(form_s * std::exp(left.log_ratio + along * (right.log_ratio - left.log_ratio)), left.seconds, right.seconds);
}

double ExactTimes::share(double rows) const {
  const double x = std::log(rows);
  const std::size_t i = behind(x);
  if (i == 0 || i == knots_.size()) return 0;
  const Knot &left = knots_[i - 1], &right = knots_[i];
  return left.share + (x - left.log_rows) / (right.log_rows - left.log_rows) * (right.share - left.share);
}

Basis ExactTimes::basis_at(double rows, Basis of_form) const {
  const double part = share(rows);
  return part >= 1 ? basis_ : part > 0 ? std::max(basis_, of_form) : of_form;
}

}  // namespace rackcast
