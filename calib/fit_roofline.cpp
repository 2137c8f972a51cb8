#include <algorithm>

#include "calib/fit_form.hpp"
#include "sim/cost/forms.hpp"

namespace rackcast::calib {

// t0 + ((flops/F)^p + (bytes/B)^p)^(1/p)
const Form roofline_form{
    "roofline",
    {{"t0_us", 1e-6, 0.3, 200}, {"mma_tflops", 1e12, 10, 20000}, {"hbm_gbs", 1e9, 100, 20000}, {"p", 1, 1, 8}},
    [](const FitPoint& x, const double* theta) {
      return theta[0] * 1e-6 + p_norm(x.flops / (theta[1] * 1e12), x.bytes / (theta[2] * 1e9), theta[3]);
    },
    {RangeAxis::gflop, RangeAxis::mb}};

// A product of matrices. However few rows, the loop of one tile over K lasts k_ns a step, and weights cannot arrive faster
// than their tiles ask for them. Tables time a kernel again and again: what fits L2 is read from there, at l2_gbs, and says
// nothing about the memory.
const Form product_form{
    "product",
    {{.name = "t0_us", .scale = 1e-6, .low = 1, .high = 200, .low_end = true},  // a node of a CUDA graph
     {"mma_tflops", 1e12, 10, 20000}, {"hbm_gbs", 1e9, 100, 20000}, {"p", 1, 1, 8},
     {.name = "k_ns", .scale = 1e-9, .low = 0.01, .high = 20, .optional = true},
     {.name = "l2_gbs", .scale = 1e9, .low = 500, .high = 60000, .optional = true}},
    [](const FitPoint& x, const double* theta) {
      const bool from_cache = x.repeated && x.bytes <= x.cache_bytes && theta[5] > 0;
      const double rate = (from_cache ? theta[5] : theta[2]) * 1e9;
      const double weights_s = std::max(x.weight_bytes / rate, x.depth * theta[4] * 1e-9);
      return theta[0] * 1e-6 + p_norm(x.flops / (theta[1] * 1e12), weights_s + (x.bytes - x.weight_bytes) / rate, theta[3]);
    },
    {RangeAxis::gflop, RangeAxis::mb}};

// The same with a cost per row: padding of a query's tile, permutation of a token
const Form row_form{
    "rows",
    {{"t0_us", 1e-6, 0.3, 200}, {"mma_tflops", 1e12, 10, 20000}, {"hbm_gbs", 1e9, 100, 20000}, {"p", 1, 1, 8},
     {.name = "row_ns", .scale = 1e-9, .low = 0.01, .high = 1000, .optional = true}},
    [](const FitPoint& x, const double* theta) {
      return theta[0] * 1e-6 + p_norm(x.flops / (theta[1] * 1e12), x.bytes / (theta[2] * 1e9), theta[3]) + theta[4] * 1e-9 * x.units;
    },
    {RangeAxis::gflop, RangeAxis::mb}};

// Attention of a prompt on heads: scores and values, and reading, converting and writing each query's heads. The keys' own
// bytes do not show.
const Form query_form{
    "queries",
    {{"t0_us", 1e-6, 0.3, 200}, {"mma_tflops", 1e12, 10, 20000}, {.name = "row_ns", .scale = 1e-9, .low = 0.01, .high = 1000, .optional = true}},
    [](const FitPoint& x, const double* theta) {
      return theta[0] * 1e-6 + x.flops / (theta[1] * 1e12) + theta[2] * 1e-9 * x.units;
    },
    {RangeAxis::gflop}};

// Experts in tiles of rows (sim/cost/expert_tile.hpp): empty rows of a tile are multiplied, too, and its loop lasts k_ns a step
const Form tile_form{
    "tiles",
    {{"t0_us", 1e-6, 0.3, 200}, {"mma_tflops", 1e12, 10, 20000}, {"hbm_gbs", 1e9, 100, 20000}, {"p", 1, 1, 8},
     {.name = "row_ns", .scale = 1e-9, .low = 0.01, .high = 1000, .optional = true},
     {.name = "k_ns", .scale = 1e-9, .low = 0.01, .high = 20, .optional = true}},
    [](const FitPoint& x, const double* theta) {
      return theta[0] * 1e-6 + p_norm(x.padded_flops / (theta[1] * 1e12), x.bytes / (theta[2] * 1e9), theta[3]) +
             theta[4] * 1e-9 * x.units + theta[5] * 1e-9 * x.depth;
    },
    {RangeAxis::gflop, RangeAxis::mb}};

}  // namespace rackcast::calib
