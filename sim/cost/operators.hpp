// The operators of one rank's step (everything but routed experts): what each costs as a linear function of the batch's
// features. The list follows from the model's shapes; the cost file gives the rates.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/cost/exact.hpp"
#include "sim/cost/features.hpp"
#include "sim/cost/forms.hpp"

namespace rackcast {

enum class Group { attention, moe, other, head, draft, host };
extern const std::string_view group_names[6];

constexpr double mla_heads_of_row_ns = 128;  // attention_mla_*: row_ns is the time of a query with so many heads

struct Operator {
  std::string name;
  Group group = Group::attention;
  double layers = 1;
  Roofline form;
  double launches = 1;        // dependent kernels, each with the form's fixed time
  int gate = 0;               // the feature that must be positive for the operator to run
  int flops_of = 0;           // feature
  double flops_per = 0;
  int bytes_of = 0;
  double bytes_per = 0;
  double bytes_fixed = 0;     // weights
  double fixed_floor_s = 0;   // however few rows, the weights' tiles loop over K this long
  int rows_of = -1;           // feature that seconds_per counts; -1: gate
  double seconds_per = 0;     // per row: padding of a query's tile, or what a composite adds
  double half_bytes = 0;      // bytes at which a link reaches half of its rate
  std::string shape;          // without the row count
  std::string family;         // of the cost file
  CostRange range;            // of the points behind it; no spans: unknown
  double link_ranks = 0;      // > 0: the bytes go over links, between so many ranks
  ExactTimes exact;           // measured points of the shape, by rows (the gate); by_rows() operators only

  double flops(const Features& x) const { return layers * flops_per * x[static_cast<std::size_t>(flops_of)]; }
  double bytes(const Features& x) const {
    return layers * (bytes_fixed + bytes_per * x[static_cast<std::size_t>(bytes_of)]);
  }
  double seconds(const Features& x) const {
    const double rows = x[static_cast<std::size_t>(gate)];
    if (rows <= 0) return 0;
    return layers * (exact.empty() ? form_s(x) : exact.seconds(rows, form_s(x)));
  }
  // One of its layers, by the form alone.
  double form_s(const Features& x) const {
    const double moved = bytes_fixed_timed() + bytes_per * x[static_cast<std::size_t>(bytes_of)];
    const double timed = half_bytes > 0 ? moved + std::sqrt(moved * half_bytes) : moved;
    return launches * form.t0_s + seconds_per * x[static_cast<std::size_t>(rows_of < 0 ? gate : rows_of)] +
           p_norm(flops_per * x[static_cast<std::size_t>(flops_of)] / form.flops_per_s, timed / form.bytes_per_s, form.p);
  }
  // One of its launches, as the points of a fit are counted.
  LaunchWork launch(const Features& x) const {
    const double count = layers * std::max(1.0, launches), moved = bytes(x) / count, rows = x[static_cast<std::size_t>(rows_of < 0 ? gate : rows_of)];
    if (gate == decode_context_feature) return launch_work(0, 0, 0, 0, 0, rows);
    return launch_work(flops(x) / count, link_ranks > 0 ? 0 : moved, link_ranks > 0 ? moved : 0, link_ranks, rows);
  }
  Basis basis(const Features& x) const {
    const double rows = x[static_cast<std::size_t>(gate)];
    return exact.empty() || rows <= 0 ? form.basis : exact.basis_at(rows, form.basis);
  }
  // Bytes that take as long as reading the weights, or as the loop over K where that is longer.
  double bytes_fixed_timed() const { return std::max(bytes_fixed, fixed_floor_s * form.bytes_per_s); }
  // True when time depends on one row count only, so that it can be kept in a table by that count.
  bool by_rows() const { return gate < row_features && flops_of == gate && bytes_of == gate && rows_of < 0; }
};

// Fills `map` with the patterns that the operators refer to.
std::vector<Operator> build_operators(const StepContext& context, FeatureMap& map);

}  // namespace rackcast
