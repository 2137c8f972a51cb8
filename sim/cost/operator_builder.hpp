// Puts the operators of one rank together, kind by kind. What a layer does besides matrices: operators_layer.cpp.
#pragma once
#include <string>
#include <vector>

#include "sim/cost/operators.hpp"

namespace rackcast {

constexpr int feature_of(Rows rows) { return static_cast<int>(rows); }

class OperatorBuilder {
 public:
  OperatorBuilder(const StepContext& context, FeatureMap& map)
      : c_(context), m_(context.model), map_(map), read_(context.costs, context.model.name),
        cut_(context.tensor_parallel ? context.ranks : 1) {}
  std::vector<Operator> build();

 private:
  void add(Operator op);
  void add_matrix(const Matrix& m);
  void use_exact_points(Operator& op, const std::string& family, double n, double k);
  void add_small(double layers, Rows rows, Group group);
  void add_core(double layers, const AttentionPattern& pattern, Group group);
  void add_index(const LayerGroup& g, Rows rows);
  void add_streams(double layers, Rows rows, Group group);
  void add_engram(const LayerGroup& g, Rows rows);
  void add_composite(double layers, Rows rows, Attends attends);
  void add_all_reduce(const char* name, double layers, Rows rows, Group group);
  static bool fuses(const Operator& op);
  void add_fused_kernels();
  void add_head();
  void add_draft();

  const StepContext& c_;
  const ModelSpec& m_;
  FeatureMap& map_;
  ParameterReader read_;
  int cut_;
  std::vector<Operator> list_;
};

}  // namespace rackcast
