// Tables of modules and whole layers as points: what each row's work is, and what a layer's operators explain of its time.
#define BOOST_TEST_MODULE fit_layers
#include "calib/fit_layers.hpp"

#include <boost/test/unit_test.hpp>

#include "calib/fit_costs.hpp"
#include "calib/fit_import.hpp"
#include "sim/base/error.hpp"
#include "tests/support/program.hpp"
#include "tests/support/recorded_data.hpp"

using namespace rackcast;
using namespace rackcast::calib;

namespace {

const std::string head = "gpu,op,backend,kernel,dtype,kv_dtype,phase,tokens,batch,seq,past_kv,m,n,k,hidden,inter,topk,experts,heads,ep,gpus,bytes,distribution,latency_us,source\n";

Imported read(const std::string& rows) {
  const support::TemporaryFolder place;
  return import_points(place.file("modules.csv", head + rows));
}

const Catalog& catalog() {
  static const Catalog found({RACKCAST_SOURCE_DIR "/scenarios"});
  return found;
}

struct Explained {
  CostSpec costs;
  ModelSpec model;
  GpuSpec gpu;
  explicit Explained(const std::string& model_name) {
    costs = read_costs(catalog(), "gb300");
    model = read_yaml_as<ModelSpec>(catalog().find("models", model_name), catalog().read_options({}, "models"));
    gpu = read_yaml_as<GpuSpec>(catalog().find("gpus", "gb300"), catalog().read_options({}, "gpus"));
  }
  FitPoint explain(FitPoint p) const {
    p.gpu = "gb300";
    p.model = model.name;
    std::vector<FitPoint> points{p};
    explain_layers(points, costs, model, gpu);
    return points[0];
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(rows_of_modules_get_the_work_of_their_shapes) {
  const Imported found = read(
      "H200,mla,trt,k,,fp8,generation,,8,1,1023,,,,,,,,128,,,,,100,s\n"
      "H200,mla,trt,k,,fp8,context,,2,100,900,,,,,,,,128,,,,,50,s\n"
      "H200,moe,trt,k,fp8_block,,,512,,,,,,,7168,2048,8,256,,8,,,balanced,80,s\n"
      "H200,gemm,trt,k,fp8_block,,,,,,,64,1536,7168,,,,,,,,,,9,s\n"
      "H200,custom_allreduce,trt,k,,,,,,,,,,,,,,,,,8,1000000,,20,s\n");
  BOOST_REQUIRE_EQUAL(found.points.size(), 5u);
  BOOST_TEST(found.left_out.empty());
  BOOST_TEST(found.points[0].family == "attention_mla_decode");
  BOOST_CHECK_CLOSE(found.points[0].bytes, 8.0 * 1024 * 656, 1e-9);
  BOOST_CHECK_CLOSE(found.points[0].flops, 8.0 * 1024 * 128 * 2 * (2 * 512 + 64), 1e-9);
  BOOST_TEST(found.points[1].family == "attention_mla_prefill");
  BOOST_CHECK_CLOSE(found.points[1].flops, 2.0 * 100 * 950 * 128 * 2 * 320, 1e-9);
  BOOST_TEST(found.points[2].family == "moe_fp8");
  BOOST_TEST(found.points[3].family == "dense_fp8");
  BOOST_CHECK_CLOSE(found.points[3].flops, 2.0 * 64 * 1536 * 7168, 1e-9);
  BOOST_TEST(found.points[4].family == "all_reduce");
  BOOST_CHECK_CLOSE(found.points[4].link_bytes, 2e6 * 7 / 8, 1e-9);
  BOOST_TEST(found.points[4].ranks == 8);
  BOOST_CHECK_CLOSE(found.points[4].time_s, 20e-6, 1e-9);
}

BOOST_AUTO_TEST_CASE(rows_of_modules_that_no_family_describes_are_counted_by_reason) {
  const Imported found = read(
      "H200,mla,trt,k,,bf16,generation,,8,1,1023,,,,,,,,128,,,,,100,s\n"
      "H200,moe,trt,k,nvfp4,,,512,,,,,,,7168,2048,8,256,,8,,,power_law_1.2,80,s\n"
      "H200,moe,trt,k,int4,,,512,,,,,,,7168,2048,8,256,,8,,,balanced,80,s\n"
      "H200,gemm,trt,k,bf16,,,,,,,64,1536,7168,,,,,,,,,,9,s\n"
      "H200,custom_allreduce,trt,k,,,,,,,,,,,,,,,,,1,1000000,,20,s\n"
      "TPU,gemm,trt,k,fp8_block,,,,,,,64,1536,7168,,,,,,,,,,9,s\n"
      "H200,gemm,trt,k,fp8_block,,,,,,,64,1536,7168,,,,,,,,,,0,s\n"
      "H200,softmax,trt,k,,,,,,,,,,,,,,,,,,,,9,s\n");
  BOOST_TEST(found.points.empty());
  BOOST_TEST(found.left_out.size() == 8u);
  for (const auto& [reason, rows] : found.left_out) BOOST_TEST(rows == 1, reason);
  BOOST_TEST(found.left_out.contains("skewed routing"));
  BOOST_TEST(found.left_out.contains("op without a form here: softmax"));
}

// Where a table times both kernels of an expert module, each counts where engines use it.
BOOST_AUTO_TEST_CASE(low_latency_expert_kernels_count_at_few_tokens_and_the_others_at_many) {
  const auto row = [](const char* kernel, int tokens, int us) {
    return std::string("GB200,moe,trt,") + kernel + ",nvfp4,,," + std::to_string(tokens) + ",,,,,,,7168,2048,8,256,,8,,,balanced," + std::to_string(us) + ",s\n";
  };
  const Imported both = read(row("min_latency", 16, 20) + row("throughput", 16, 10) + row("min_latency", 4096, 100) + row("throughput", 4096, 300) +
                             row("min_latency", 512, 60) + row("throughput", 512, 40));
  BOOST_REQUIRE_EQUAL(both.points.size(), 3u);
  std::map<double, double> us_at_flops;
  for (const FitPoint& p : both.points) us_at_flops[p.flops] = p.time_s * 1e6;
  std::vector<double> us;
  for (const auto& [flops, time] : us_at_flops) us.push_back(time);
  BOOST_REQUIRE_EQUAL(us.size(), 3u);
  BOOST_CHECK_CLOSE(us[0], 20, 1e-6);   // 16 tokens: the low-latency kernel, though the other was faster
  BOOST_CHECK_CLOSE(us[1], 40, 1e-6);   // between the two the faster
  BOOST_CHECK_CLOSE(us[2], 300, 1e-6);  // many tokens: the other
  BOOST_TEST(read(row("throughput", 16, 10)).points.size() == 1u);  // alone it counts everywhere
}

BOOST_AUTO_TEST_CASE(operators_explain_a_part_of_a_layer_that_grows_with_its_batch) {
  const Explained v41("deepseek-v4.1-flash");
  const auto known_us = [&](const char* family, double requests, double fresh, double context) {
    FitPoint p;
    p.family = family;
    p.requests = requests;
    p.fresh = fresh;
    p.context = context;
    return v41.explain(p).known_s * 1e6;
  };
  const double one = known_us("composite_selected", 1, 1, 65536), many = known_us("composite_selected", 256, 1, 65536);
  BOOST_TEST(one > 1);
  BOOST_TEST(one < 500);
  BOOST_TEST(many > 2 * one);
  BOOST_TEST(known_us("composite_window", 256, 1, 65536) < many);  // it attends only its window
  BOOST_TEST(known_us("composite_selected", 1, 8192, 0) > 10 * one);
}

BOOST_AUTO_TEST_CASE(a_whole_forward_is_split_over_the_models_layers) {
  const Explained v41("deepseek-v4.1-flash");
  FitPoint p;
  p.family = "composite";
  p.shape = "case 16*6@64K";
  p.ranks = 32;
  p.time_s = 8.86e-3;
  const FitPoint q = v41.explain(p);
  BOOST_CHECK_CLOSE(q.time_s, 8.86e-3 / v41.model.layer_count(), 1e-9);
  BOOST_TEST(q.known_s > 0.3 * q.time_s);
  BOOST_TEST(q.known_s < 1.3 * q.time_s);
  BOOST_TEST(q.units == 96);
  p.ranks = -8;  // tensor parallel
  BOOST_TEST(v41.explain(p).ranks == 8);
}

BOOST_AUTO_TEST_CASE(points_of_other_models_and_families_are_left_alone) {
  const Explained r1("deepseek-r1");
  FitPoint p;
  p.family = "dense_fp8";
  p.shape = "m=1";
  p.time_s = 1e-5;
  BOOST_TEST(r1.explain(p).known_s == 0);
  p.family = "composite_selected";  // R1 selects nothing
  p.requests = p.fresh = 1;
  BOOST_CHECK_THROW(r1.explain(p), UserError);
}

BOOST_AUTO_TEST_CASE(what_a_layer_costs_with_its_context_is_found_where_points_show_it_and_absent_where_not) {
  const auto points = [](double a2, bool whole_forwards) {
    std::vector<FitPoint> list;
    for (const double requests : {1., 8., 32., 128., 256.})
      for (const double context : {1024., 4096., 16384.}) {
        FitPoint p;
        p.gpu = "gb300", p.model = "m", p.family = "composite_selected", p.source = "test";
        p.known_s = 60e-6, p.units = requests, p.fresh = 1;
        if (!whole_forwards) p.requests = requests, p.context = context;
        p.time_s = p.known_s + (5 + 0.05 * requests + a2 * requests * context * 1e-6) * 1e-6;
        list.push_back(p);
      }
    return list;
  };
  CostSpec prior;
  prior.gpu = "gb300";
  const auto fitted = [&](const std::vector<FitPoint>& list) { return fit_costs(prior, "gb300", list, {.bootstraps = 30}).costs.models.at("m").families.at("composite_selected"); };
  const CostFamily found = fitted(points(12, false));
  BOOST_REQUIRE(found.parameters.contains("a2_us"));
  BOOST_CHECK_CLOSE(found.parameters.at("a2_us").value, 12, 1);
  BOOST_CHECK_CLOSE(found.range->spans[static_cast<std::size_t>(RangeAxis::context_mtok)].hi, 256 * 16384e-6, 0.1);
  BOOST_TEST(!fitted(points(0, false)).parameters.contains("a2_us"));
  BOOST_TEST(!fitted(points(0, true)).parameters.contains("a2_us"));
  std::vector<FitPoint> few = points(0, true);
  few.resize(3);  // two parameters that they tell
  BOOST_TEST(fitted(few).parameters.contains("a1_us"));
}

// KERNELS' bar for whole attention layers, on every GPU that the published tables know.
BOOST_AUTO_TEST_CASE(published_decode_layers_are_met_within_five_percent_when_left_out) {
  const auto table = test_support::recorded_data("silicon/kernel_points.csv");
  if (!table) return;
  const std::vector<FitPoint> points = import_points(*table).points;
  const ModelSpec model = read_yaml_as<ModelSpec>(catalog().find("models", "deepseek-v4-flash"), catalog().read_options({}, "models"));
  for (const char* name : {"h100", "h200", "b200", "b300", "gb200", "gb300"}) {
    const CostSpec costs = read_costs(catalog(), name);
    std::vector<FitPoint> layers;
    for (const FitPoint& p : points)
      if (p.gpu == name && p.family.starts_with("composite")) layers.push_back(p);
    explain_layers(layers, costs, model, read_yaml_as<GpuSpec>(catalog().find("gpus", name), catalog().read_options({}, "gpus")));
    const CostFit fit = fit_costs(costs, name, layers, {.bootstraps = 20});
    BOOST_TEST(fit.families.size() == 2u);
    for (const FamilyFit& f : fit.families) BOOST_CHECK_MESSAGE(f.range.cross_validated_error < 0.05, name << ' ' << f.family << ' ' << f.range.cross_validated_error);
  }
}
