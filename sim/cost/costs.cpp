#include "sim/cost/costs.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include "sim/base/error.hpp"
#include "sim/cost/draws.hpp"
#include "sim/cost/forms.hpp"

namespace rackcast {

const std::string_view basis_names[4] = {"measured", "published", "transferred", "assumed"};

void fields(Visitor& v, CostParameter& p) {
  v.field("value", p.value, "central value, in the unit that ends the parameter's name").required();
  v.field("lo", p.lo, "lower end of the 80% interval").require(p.lo <= p.value, "must be <= value").required();
  v.field("hi", p.hi, "upper end of the 80% interval").require(p.hi >= p.value, "must be >= value").required();
  v.choice("basis", p.basis, basis_names, "where the number comes from").required();
  v.field("source", p.source, "citation and date").require(!p.source.empty(), "must not be empty").required();
}

namespace {

constexpr std::size_t most_curves = 1024;

bool one_a_shape(const std::vector<ExactCurve>& curves) {
  std::set<ExactShape> shapes;
  return std::all_of(curves.begin(), curves.end(), [&](const ExactCurve& c) { return shapes.insert(c.shape).second; });
}

bool exact_where_known(const std::map<std::string, CostFamily>& families) {
  for (const auto& [name, family] : families)
    for (const ExactCurve& c : family.exact)
      if (!(c.shape.n > 0 ? exact_matrices(name) : exact_layers(name))) return false;
  return true;
}

// Rates are divided by, times of launches add up. Composites may take time back, fused experts less with more ranks.
std::string impossible(const std::map<std::string, CostFamily>& families) {
  for (const auto& [name, family] : families)
    for (const auto& [parameter, p] : family.parameters) {
      const auto ends = [&, key = std::string_view(parameter)](std::string_view unit) { return key.ends_with(unit); };
      if ((ends("_gbs") || ends("_tflops") || ends("_efficiency")) && !(p.lo > 0)) return name + "." + parameter + ": a rate must be > 0";
      if (!name.starts_with("composite") && name != "moe_fused" && (ends("_us") || ends("_ns") || ends("_mb")) && !(p.value >= 0)) return name + "." + parameter + ": must be >= 0";
    }
  return {};
}

constexpr std::string_view exact_rule = "exact points are of matrices in families dense_*, of layers of experts in moe_fused";

}  // namespace

void fields(Visitor& v, CostFamily& f) {
  v.field("form", f.form, "which formula of sim/cost/README.md; empty: the family's only one");
  v.map("parameters", f.parameters, "by name; the end of a name is its unit");
  v.list_if_any("exact", f.exact, "measured points of single shapes, which win over the form where they are dense (families dense_*, moe_fused)")
      .require(f.exact.size() <= most_curves, "must hold at most 1024 curves")
      .require(!v.clean() || one_a_shape(f.exact), "must hold one curve a shape");
  v.optional_group("range", f.range, "the measured launches behind the parameters, and how well they meet them; a step that leaves their range says so");
}

void fields(Visitor& v, ModelOverride& o) {
  const FieldRule families = v.map("families", o.families, "parameters that replace the GPU's for this model");
  families.require(!v.clean() || exact_where_known(o.families), exact_rule);
  if (const std::string bad = v.clean() ? impossible(o.families) : std::string(); !bad.empty()) families.require(false, bad);
}

void fields(Visitor& v, CostSpec& c) {
  v.field("name", c.name, "of the cost file").required();
  v.field("gpu", c.gpu, "the GPU that it is about").required();
  v.field("source", c.source, "how the file came about, with date");
  const FieldRule families = v.map("families", c.families, "parameters by kernel family");
  families.require(!v.clean() || exact_where_known(c.families), exact_rule);
  if (const std::string bad = v.clean() ? impossible(c.families) : std::string(); !bad.empty()) families.require(false, bad);
  v.map("models", c.models, "composites fitted on one model");
}

namespace {

// The family in the model's overrides, or null.
const CostFamily* override_of(const CostSpec& costs, const std::string& family, const std::string& model) {
  const auto found = costs.models.find(model);
  if (found == costs.models.end()) return nullptr;
  const auto entry = found->second.families.find(family);
  return entry == found->second.families.end() ? nullptr : &entry->second;
}

}  // namespace

bool CostSpec::has(const std::string& family, const std::string& model) const {
  return families.count(family) > 0 || override_of(*this, family, model) != nullptr;
}

const std::string& CostSpec::form(const std::string& family, const std::string& model) const {
  const CostFamily* own = override_of(*this, family, model);
  if (own && !own->form.empty()) return own->form;
  const auto found = families.find(family);
  if (found == families.end()) throw UserError("costs of " + name + ": no family " + family + "; add it to the cost file");
  return found->second.form;
}

const CostParameter* CostSpec::find(const std::string& family, const std::string& parameter, const std::string& model) const {
  if (const CostFamily* own = override_of(*this, family, model)) {
    const auto found = own->parameters.find(parameter);
    if (found != own->parameters.end()) return &found->second;
  }
  const auto entry = families.find(family);
  if (entry != families.end()) {
    const auto found = entry->second.parameters.find(parameter);
    if (found != entry->second.parameters.end()) return &found->second;
  }
  return nullptr;
}

const CostParameter& CostSpec::get(const std::string& family, const std::string& parameter, const std::string& model) const {
  if (const CostParameter* found = find(family, parameter, model)) return *found;
  throw UserError("costs of " + name + ": " + family + "." + parameter + " is needed by this model and missing; add it " +
                  "to the cost file");
}

const ExactCurve* CostSpec::exact(const std::string& family, const ExactShape& shape, const std::string& model) const {
  const CostFamily* of = override_of(*this, family, model);
  if (!of) {
    const auto found = families.find(family);
    if (found == families.end()) return nullptr;
    of = &found->second;
  }
  const auto curve = std::find_if(of->exact.begin(), of->exact.end(), [&](const ExactCurve& c) { return c.shape == shape; });
  return curve == of->exact.end() ? nullptr : &*curve;
}

const CostRange* CostSpec::range(const std::string& family, const std::string& model) const {
  if (const CostFamily* own = override_of(*this, family, model); own && own->range) return &*own->range;
  const auto found = families.find(family);
  return found == families.end() || !found->second.range ? nullptr : &*found->second.range;
}

namespace {

double number_of(const std::string& text, const std::string& name) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw UserError("cost file '" + name + "': after @ stands the number of a draw, or FAMILY*FACTOR");
  return value;
}

}  // namespace

CostSpec read_costs(const Catalog& catalog, const std::string& name) {
  const std::size_t at = name.find('@');
  CostSpec costs = read_yaml_as<CostSpec>(catalog.find("costs", name.substr(0, at)), catalog.read_options({}, "costs"));
  if (at == std::string::npos) return costs;
  const std::string variation = name.substr(at + 1);
  const std::size_t star = variation.rfind('*');
  if (star == std::string::npos) return draw_costs(costs, 1, static_cast<int>(number_of(variation, name)));
  const double factor = number_of(variation.substr(star + 1), name);
  if (factor <= 0) throw UserError("cost file '" + name + "': a factor must be > 0");
  return scale_costs(costs, variation.substr(0, star), factor);
}

double ParameterReader::value(const std::string& family, const std::string& parameter) {
  const CostParameter& found = costs_.get(family, parameter, model_);
  weakest_ = std::max(weakest_, found.basis);
  return found.value;
}

double ParameterReader::value_or(const std::string& family, const std::string& parameter, double otherwise) {
  return costs_.find(family, parameter, model_) ? value(family, parameter) : otherwise;
}

const CostRange* ParameterReader::range(const std::string& family) const { return costs_.range(family, model_); }

Basis ParameterReader::take_basis() {
  const Basis weakest = weakest_;
  weakest_ = Basis::measured;
  return weakest;
}

Roofline ParameterReader::roofline(const std::string& family) {
  Roofline form{.t0_s = value(family, "t0_us") * 1e-6,
                .flops_per_s = value(family, "mma_tflops") * 1e12,
                .bytes_per_s = value(family, "hbm_gbs") * 1e9,
                .p = 1};
  form.basis = take_basis();
  form.p = value(family, "p");  // a shape, not a rate: it does not weaken the basis
  take_basis();
  return form;
}

Roofline ParameterReader::stream(const std::string& family) {
  Roofline form{.t0_s = value(family, "t0_us") * 1e-6,
                .flops_per_s = 1,
                .bytes_per_s = value(family, "hbm_gbs") * 1e9,
                .p = 1};
  form.basis = take_basis();
  return form;
}

}  // namespace rackcast
