// The time of one rank's operators (everything but routed experts): those of one row count as curves that are kept once
// computed, the others cut down to what their time needs. Inline: a step asks for every rank that may be the slowest.
#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/cost/operators.hpp"

namespace rackcast {

constexpr int group_count = 6;
using GroupSeconds = std::array<double, group_count>;
constexpr std::size_t index_of(Group g) { return static_cast<std::size_t>(g); }

// Time by group of the operators that work on one row count, kept by that count once computed.
class RowCurve {
 public:
  void add(const Operator* op) { operators_.push_back(op); }

  const GroupSeconds& at(double rows, std::size_t feature, GroupSeconds& scratch) const {
    const auto whole = static_cast<std::size_t>(rows);
    if (rows >= kept_limit || static_cast<double>(whole) != rows) {
      scratch = compute(rows, feature);
      return scratch;
    }
    if (whole >= kept_.size()) {
      GroupSeconds unknown;
      unknown.fill(std::numeric_limits<double>::quiet_NaN());
      kept_.resize(std::max<std::size_t>(whole + 1, 2 * kept_.size()), unknown);
    }
    if (std::isnan(kept_[whole][0])) kept_[whole] = compute(rows, feature);
    return kept_[whole];
  }

 private:
  static constexpr double kept_limit = 1 << 18;
  GroupSeconds compute(double rows, std::size_t feature) const {
    Features x{};
    x[feature] = rows;
    GroupSeconds sum{};
    for (const Operator* op : operators_) sum[index_of(op->group)] += op->seconds(x);
    return sum;
  }

  std::vector<const Operator*> operators_;
  mutable std::vector<GroupSeconds> kept_;  // a model serves one thread
};

// An operator of several features, cut down to what its time needs.
struct DirectOperator {
  explicit DirectOperator(const Operator& op)
      : gate(op.gate), flops_of(op.flops_of), bytes_of(op.bytes_of), rows_of(op.rows_of < 0 ? op.gate : op.rows_of), group(static_cast<int>(op.group)), layers(op.layers),
        fixed_s(op.launches * op.form.t0_s), per_row_s(op.seconds_per), per_flops_s(op.flops_per / op.form.flops_per_s),
        per_bytes_s(op.bytes_per / op.form.bytes_per_s), bytes_fixed_s(op.bytes_fixed_timed() / op.form.bytes_per_s), norm(op.form.p) {}
  double seconds(const Features& x) const {
    return with(x, [&](double a, double b) { return norm.cheap() ? norm(a, b) : kept(a, b); });
  }
  double seconds_above(const Features& x) const {
    return with(x, [&](double a, double b) { return norm.above(a, b); });
  }
  int gate, flops_of, bytes_of, rows_of, group;
  double layers, fixed_s, per_row_s, per_flops_s, per_bytes_s, bytes_fixed_s;
  PNorm norm;

 private:
  template <class Norm>
  double with(const Features& x, Norm&& of) const {
    if (x[static_cast<std::size_t>(gate)] <= 0) return 0;
    return layers * (fixed_s + per_row_s * x[static_cast<std::size_t>(rows_of)] +
                     of(per_flops_s * x[static_cast<std::size_t>(flops_of)], bytes_fixed_s + per_bytes_s * x[static_cast<std::size_t>(bytes_of)]));
  }
  // Windows are full, so that many ranks and steps ask for the same norm.
  struct Kept {
    double a = -1, b = -1, norm = 0;
  };
  double kept(double a, double b) const {
    Kept& slot = kept_[(std::bit_cast<std::uint64_t>(a) * 0x9e3779b97f4a7c15ULL ^ std::bit_cast<std::uint64_t>(b) * 0xff51afd7ed558ccdULL) >> 58];
    if (slot.a != a || slot.b != b) slot = {a, b, norm(a, b)};
    return slot.norm;
  }
  mutable std::array<Kept, 64> kept_;  // a model serves one thread
};

struct RankTime {
  GroupSeconds groups{};
  double layers_s() const { return groups[index_of(Group::attention)] + groups[index_of(Group::other)]; }
};

}  // namespace rackcast
