#include "calib/fit_form.hpp"

#include "sim/base/error.hpp"

namespace rackcast::calib {

namespace {

const Form* const forms[] = {&roofline_form, &product_form, &row_form, &tile_form, &query_form, &stream_form, &fused_form, &exchange_form,
                             &collective_form, &layer_form, &linear_form, &descriptor_form};

struct FamilyForm {
  std::string_view prefix;
  std::string_view form;
};
constexpr FamilyForm family_forms[] = {
    {"dense_", "product"}, {"attention_latent", "rows"}, {"attention_mla_prefill", "queries"}, {"attention_", "roofline"}, {"indexer", "roofline"}, {"moe_fused", "fused"},
    {"moe_fp4", "tiles"}, {"moe_", "rows"},   {"small", "stream"},        {"mhc", "stream"},       {"topk", "stream"},
    {"route", "stream"},    {"engram_", "stream"},      {"a2a_", "exchange"},    {"all_reduce", "collective"},
    {"nccl_", "collective"}, {"deepep_", "exchange"},
    {"composite", "layer"}, {"host", "linear"},         {"kv_transfer", "descriptors"},
};

}  // namespace

// Rows: what a form counts in units. A fused layer reads and writes what it reduces, too.
LaunchWork work_of(const FitPoint& p) { return launch_work(p.flops, p.bytes + p.reduce_bytes, p.link_bytes, p.ranks, p.units, held_context(p)); }

const Form& form_named(std::string_view name) {
  for (const Form* form : forms)
    if (form->name == name) return *form;
  throw UserError("no fit form '" + std::string(name) + "'");
}

const Form& form_of_family(std::string_view family) {
  for (const FamilyForm& row : family_forms)
    if (family.substr(0, row.prefix.size()) == row.prefix) return form_named(row.form);
  throw UserError("no fit form is known for cost family '" + std::string(family) + "'");
}

}  // namespace rackcast::calib
