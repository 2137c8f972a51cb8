// Products of matrices and experts in tiles: what their forms find again, and what the cache, few points or other GPUs may say.
#define BOOST_TEST_MODULE fit_product
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <tuple>

#include "calib/fit_costs.hpp"
#include "calib/fit_import.hpp"
#include "calib/fit_siblings.hpp"
#include "calib/fit_work.hpp"
#include "sim/cost/expert_tile.hpp"
#include "tests/support/recorded_data.hpp"

using namespace rackcast;
using namespace rackcast::calib;
namespace tt = boost::test_tools;

namespace {

constexpr double truth[] = {3, 1000, 4000, 4, 2, 9000};  // t0, F, HBM, p, K loop, L2

std::vector<FitPoint> products(bool repeated) {
  std::vector<FitPoint> points;
  for (const double k : {1024., 4096., 16384.})
    for (const double n : {2048., 32768.})
      for (const double m : {1., 64., 512., 4096., 16384.}) {
        FitPoint p;
        p.gpu = "h200";
        p.family = "dense_fp8";
        p.source = "test";
        p.repeated = repeated;
        p.cache_bytes = 60e6;
        gemm_work(p, m, n, k, WeightType::fp8);
        p.time_s = product_form.seconds(p, truth);
        points.push_back(p);
      }
  return points;
}

double value_of(const FamilyFit& fit, const std::string& name) {
  for (const FittedParameter& p : fit.parameters)
    if (p.name == name) return p.value;
  return 0;
}

GpuSpec gpu(const std::string& name, double fp8, double memory) {
  GpuSpec spec;
  spec.name = name;
  spec.fp8 = FlopsPerSecond(fp8);
  spec.hbm_bandwidth = BytesPerSecond(memory);
  return spec;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_loop_over_k_is_told_apart_from_the_memory) {
  const FamilyFit fit = fit_family(product_form, products(false), {5, 500, 3000, 2, 0, 0}, {.bootstraps = 20});
  BOOST_TEST(value_of(fit, "k_ns") == 2, tt::tolerance(0.01));
  BOOST_TEST(value_of(fit, "hbm_gbs") == 4000, tt::tolerance(0.01));
  BOOST_TEST(value_of(fit, "l2_gbs") == 0);  // nothing was read from there
}

BOOST_AUTO_TEST_CASE(rows_that_fit_the_cache_do_not_set_the_memorys_bandwidth) {
  const FamilyFit fit = fit_family(product_form, products(true), {5, 500, 3000, 2, 0, 0}, {.bootstraps = 20, .largest_hbm_gbs = 4800});
  BOOST_TEST(value_of(fit, "hbm_gbs") == 4000, tt::tolerance(0.01));
  BOOST_TEST(value_of(fit, "l2_gbs") == 9000, tt::tolerance(0.05));
}

BOOST_AUTO_TEST_CASE(a_parameter_without_a_prior_that_points_do_not_ask_for_is_not_written) {
  std::vector<FitPoint> points = products(false);
  for (FitPoint& p : points) {
    p.depth = 0;
    p.time_s = product_form.seconds(p, truth);
  }
  const CostFit fit = fit_costs({}, "h200", points, {.bootstraps = 20});
  BOOST_TEST(fit.costs.families.at("dense_fp8").parameters.count("k_ns") == 0u);
  BOOST_TEST(fit.costs.families.at("dense_fp8").parameters.count("hbm_gbs") == 1u);
  BOOST_TEST(fit.costs.families.at("dense_fp8").form == "product");
}

BOOST_AUTO_TEST_CASE(few_points_are_cross_validated_one_by_one) {
  std::vector<FitPoint> points = products(false);
  points.resize(8);
  for (std::size_t i = 0; i < points.size(); ++i) points[i].time_s *= i % 2 ? 1.1 : 0.9;
  BOOST_TEST(fit_family(product_form, points, {3, 1000, 4000, 4, 2, 0}, {.bootstraps = 20}).range.cross_validated_error > 0.01);
}

BOOST_AUTO_TEST_CASE(too_few_points_are_joined_by_those_of_other_gpus_at_the_same_share_of_their_limits) {
  const std::map<std::string, GpuSpec> specs{{"h200", gpu("h200", 2000e12, 5e12)}, {"gb300", gpu("gb300", 5000e12, 8e12)}};
  const std::vector<FitPoint> all = products(false);
  std::vector<FitPoint> own;
  BOOST_TEST(add_siblings(own, all, "gb300", specs).size() == 1u);
  const FamilyFit fit = fit_family(product_form, own, {5, 500, 3000, 2, 0, 0}, {.bootstraps = 20});
  BOOST_TEST(value_of(fit, "mma_tflops") == 2500, tt::tolerance(0.01));
  BOOST_TEST(value_of(fit, "hbm_gbs") == 6400, tt::tolerance(0.01));
  BOOST_TEST(value_of(fit, "k_ns") == 2, tt::tolerance(0.01));
  BOOST_TEST((fit.basis == Basis::transferred));
  std::vector<FitPoint> enough = all;
  BOOST_TEST(add_siblings(enough, all, "h200", specs).empty());
}

BOOST_AUTO_TEST_CASE(a_balanced_table_touches_as_many_experts_as_it_can_and_tiles_are_multiplied_whole) {
  FitPoint p;
  expert_work(p, {4096, 2048, 256, 6}, 32, 1, WeightType::fp4);
  BOOST_TEST(p.weight_bytes == 192 * 3.0 * 4096 * 2048 * bytes_per_weight(WeightType::fp4), tt::tolerance(1e-12));
  BOOST_TEST(p.padded_flops == 8 * p.flops, tt::tolerance(1e-12));  // one row in a tile of eight
  BOOST_TEST(expert_tile(6) == 8);
  BOOST_TEST(expert_tile(48) == 32);
  BOOST_TEST(expert_tile(64) == 32);
  BOOST_TEST(expert_tile(65) == 64);
  BOOST_TEST(expert_tile(1e6) == 128);
  BOOST_TEST(padded_rows(10, 10, 8) == 80);
  BOOST_TEST(padded_rows(10000, 10, 128) == 10640);
}

BOOST_AUTO_TEST_CASE(published_tables_keep_their_bars) {
  const auto kernels = test_support::recorded_data("silicon/kernel_points.csv"), modules = test_support::recorded_data("silicon/silicon_points.csv");
  if (!kernels || !modules) return;
  std::vector<FitPoint> points = import_points(*kernels).points;
  const std::vector<FitPoint> more = import_points(*modules).points;
  points.insert(points.end(), more.begin(), more.end());
  const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});
  std::map<std::string, GpuSpec> specs;
  for (const char* name : {"h100", "h200", "b200", "b300", "gb200", "gb300"}) specs[name] = read_yaml_as<GpuSpec>(catalog.find("gpus", name), catalog.read_options());
  know_cache(points, specs);
  for (const auto& [name, family, bar] : {std::tuple{"gb300", "dense_bf16", 0.09}, {"h200", "dense_bf16", 0.09}, {"b300", "dense_bf16", 0.09}, {"gb300", "dense_fp8", 0.12},
                                          {"h200", "dense_fp8", 0.12}, {"gb300", "dense_fp4", 0.12}, {"gb300", "moe_fp4", 0.10}, {"gb200", "moe_fp4", 0.10},
                                          {"b200", "moe_fp4", 0.10}, {"gb300", "attention_mla_prefill", 0.15}}) {
    std::vector<FitPoint> chosen;
    for (const FitPoint& p : points)
      if (p.gpu == name && p.family == family) chosen.push_back(p);
    std::vector<FitPoint> all;
    for (const FitPoint& p : points)
      if (p.family == family) all.push_back(p);
    add_siblings(chosen, all, name, specs);
    const CostFit fit = fit_costs(read_costs(catalog, name), name, chosen, {.bootstraps = 20, .largest_hbm_gbs = specs.at(name).hbm_bandwidth.value() / 1e9});
    BOOST_REQUIRE_EQUAL(fit.families.size(), 1);
    BOOST_CHECK_MESSAGE(fit.families[0].range.cross_validated_error < bar, name << ' ' << family << ' ' << fit.families[0].range.cross_validated_error);
    for (const FittedParameter& p : fit.families[0].parameters)
      if (p.name == "hbm_gbs") BOOST_TEST(p.value <= specs.at(name).hbm_bandwidth.value() / 1e9);
  }
}
