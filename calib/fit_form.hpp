// What the fitter fits: points (work and time of one launch) and forms (work and parameters to time). The forms are those
// of sim/cost; a new one is a file fit_<name>.cpp and a row in fit_forms.cpp.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cost/costs.hpp"

namespace rackcast::calib {

struct FitPoint {
  std::string gpu;          // as cost files call it
  std::string model;        // empty: the GPU's family; else an override of this model
  std::string family;
  std::string form;         // where a family's points can be of several (unique, copies): what the cost file calls it
  std::string shape;        // for reports
  std::string source;
  Basis basis = Basis::published;
  double time_s = 0;
  double flops = 0, bytes = 0;          // of the slowest rank
  double weight_bytes = 0;              // of bytes
  double padded_flops = 0;              // of tiles that are full only in part (experts)
  double rows = 0;                      // of one matrix; tokens of a rank, of experts
  ExactShape exact;                     // which matrix or layer of experts; none: points of no one shape
  double depth = 0;                     // steps of K that one tile makes; of experts: times its share of 128 rows
  bool repeated = false;                // timed again and again on the same data
  double cache_bytes = 0;               // L2 of the GPU, where `repeated` finds what fits
  double link_bytes = 0, reduce_bytes = 0;
  double ranks = 1;
  double units = 0;                     // rows, requests or descriptors, where a form counts them
  double known_s = 0;                   // part of the time that other families explain (composites)
  double requests = 0, fresh = 0, context = 0;  // whole layers: what the batch was; fresh 1 is decode
};

struct Parameter {
  std::string_view name;    // unit last, as in cost files
  double scale;             // value in SI = scale x value in that unit
  double low, high;         // bounds, in the file's unit
  bool positive = true;     // fitted as a logarithm; else linear
  bool by_ranks = false;    // a slope over team sizes: points of one size cannot tell it
  bool low_end = false;     // its lower bound is a value like any other
  bool optional = false;    // 0 where neither the points nor a cost file say otherwise
};

struct Form {
  std::string_view name;
  std::vector<Parameter> parameters;
  double (*seconds)(const FitPoint& point, const double* theta);  // theta in the file's units
  std::vector<RangeAxis> axes;    // of a launch that its time depends on
};

LaunchWork work_of(const FitPoint& point);
// Tokens that the decode requests of a whole layer's point hold.
inline double held_context(const FitPoint& p) { return p.fresh > 1 ? 0 : p.requests * p.context; }
const Form& form_named(std::string_view name);
// The form of a cost family: dense_fp8 -> roofline.
const Form& form_of_family(std::string_view family);

extern const Form roofline_form, product_form, row_form, tile_form, query_form, stream_form, fused_form, exchange_form, collective_form, layer_form, linear_form, descriptor_form;

}  // namespace rackcast::calib
