// The parameters of one GPU's cost forms, as scenarios/costs/<gpu>.yaml holds them. Each has a value, an interval, a
// basis and a source; its unit is the end of its name (t0_us, mma_tflops, hbm_gbs). Parameters are grouped by kernel
// family; a model may override single ones (composites fitted on that model).
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/catalog.hpp"
#include "sim/base/schema.hpp"
#include "sim/cost/cost_range.hpp"

namespace rackcast {

// In order of trust; the weakest of an operator's parameters is the operator's basis.
enum class Basis { measured, published, transferred, assumed };
extern const std::string_view basis_names[4];

struct CostParameter {
  double value = 0;
  double lo = 0, hi = 0;   // 80% interval
  Basis basis = Basis::assumed;
  std::string source;      // citation and date
};
void fields(Visitor& v, CostParameter& p);

// What exact points are of: a matrix of n columns and k rows, or a layer of experts over so many ranks.
struct ExactShape {
  int n = 0, k = 0;
  int hidden = 0, intermediate = 0, experts = 0, top_k = 0, ranks = 0;
  auto operator<=>(const ExactShape&) const = default;
};

// Measured points of one shape (exact.hpp), read as ratios to what the family's form says.
struct ExactCurve {
  ExactShape shape;
  std::vector<int> rows;   // rising; of experts: tokens of each rank
  std::vector<double> ratio;
  Basis basis = Basis::assumed;
  std::string source;
};
void fields(Visitor& v, ExactCurve& c);

struct CostFamily {
  std::string form;        // formula, in sim/cost/README.md's words
  std::map<std::string, CostParameter> parameters;
  std::vector<ExactCurve> exact;  // dense_*, moe_fused: one a shape
  std::optional<CostRange> range; // absent: no points of ours behind them
};
void fields(Visitor& v, CostFamily& f);

struct ModelOverride {
  std::map<std::string, CostFamily> families;
};
void fields(Visitor& v, ModelOverride& o);

struct CostSpec {
  std::string name;        // of the file, usually the GPU's
  std::string gpu;
  std::string source;
  std::map<std::string, CostFamily> families;
  std::map<std::string, ModelOverride> models;

  bool has(const std::string& family, const std::string& model = {}) const;
  const std::string& form(const std::string& family, const std::string& model = {}) const;
  const CostParameter* find(const std::string& family, const std::string& parameter, const std::string& model = {}) const;
  // The model's override if there is one; UserError naming the file and key if neither exists.
  const CostParameter& get(const std::string& family, const std::string& parameter, const std::string& model = {}) const;
  // Exact points of a shape, or null. Ratios belong to the parameters beside them: a model's own family has its own points or none.
  const ExactCurve* exact(const std::string& family, const ExactShape& shape, const std::string& model = {}) const;
  // On which work the family was fitted, the model's own if it has one; or null.
  const CostRange* range(const std::string& family, const std::string& model = {}) const;
};
// Families whose operators know exact points: of matrices, of layers of experts.
inline bool exact_matrices(std::string_view family) { return family.starts_with("dense_"); }
inline bool exact_layers(std::string_view family) { return family == "moe_fused"; }
void fields(Visitor& v, CostSpec& c);

// "gb300", or a variation of it: "gb300@3" is parameter draw 3 of its intervals, "gb300@a2a_dispatch*1.1" has that family
// 10% slower ("*" for all of them: "gb300@**1.1").
CostSpec read_costs(const Catalog& catalog, const std::string& name);

}  // namespace rackcast
