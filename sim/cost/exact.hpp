// Measured points of one shape that win over its family's form where they are dense. What is kept is a ratio, measured time over
// the form's, so that draws and scaled families move the points, too; between points the ratio is interpolated, not the time.
#pragma once
#include <algorithm>
#include <functional>
#include <vector>

#include "sim/cost/costs.hpp"

namespace rackcast {

// Neighbours at most this far apart are dense: kernels change their tile when the rows of one double or quadruple, and
// published tables step by as much where they are fine. It is also how far from its last point a ratio fades.
inline constexpr double dense_gap = 4;

// The time of one operator by its rows, where it has exact points.
class ExactTimes {
 public:
  ExactTimes() = default;
  // form_s: what the operator takes without them, by rows; it must not fall. Points whose times would fall with more rows
  // are pooled (isotonic regression of the times' logarithms). bends: form_s also bends downwards on log axes (experts that a
  // batch touches saturate), so that between two points it may fall; time then stays.
  ExactTimes(const ExactCurve& curve, const std::function<double(double)>& form_s, bool bends = false);

  bool empty() const { return knots_.empty(); }
  // Continuous in rows, and never falling.
  double seconds(double rows, double form_s) const;
  double share(double rows) const;  // 1 between dense points, 0 where the form alone counts
  Basis basis_at(double rows, Basis of_form) const;

 private:
  struct Knot {
    double log_rows, log_ratio, seconds, share;
  };
  void level(const std::function<double(double)>& form_s);
  std::size_t behind(double log_rows) const;  // index of the first knot behind it
  void add(double log_rows, double log_ratio, double seconds, double share) { knots_.push_back({log_rows, log_ratio, seconds, share}); }

  std::vector<Knot> knots_;  // points, and between them where the form alone counts
  Basis basis_ = Basis::assumed;
};

// The smallest change, in squares, that makes the values rise or stay: neighbours that fall are pooled to their mean.
void make_isotonic(std::vector<double>& values);

}  // namespace rackcast
