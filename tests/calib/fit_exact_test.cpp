// Exact points out of measured ones: which are taken, what they are divided by, and when the form is better alone.
#define BOOST_TEST_MODULE fit_exact
#include "calib/fit_exact.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "calib/fit_work.hpp"
#include "sim/base/catalog.hpp"
#include "sim/cost/exact.hpp"

using namespace rackcast;
using namespace rackcast::calib;
namespace tt = boost::test_tools;

namespace {

// t0, mma, hbm, p, k, l2
const std::vector<double> truth = {5, 1500, 6000, 4, 1, 9000};

CostSpec costs(bool with_l2 = true) {
  CostSpec c;
  c.name = c.gpu = "gb300";
  CostFamily& family = c.families["dense_bf16"];
  family.form = "product";
  const std::vector<Parameter>& all = product_form.parameters;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (with_l2 || all[i].name != "l2_gbs") family.parameters[std::string(all[i].name)] = {truth[i], truth[i], truth[i], Basis::published, "test"};
  return c;
}

FitPoint point(double rows, double n, double k, double ratio, bool repeated = false) {
  FitPoint p;
  p.gpu = "gb300";
  p.family = "dense_bf16";
  p.source = "a table";
  p.basis = Basis::published;
  p.repeated = repeated;
  p.cache_bytes = 126e6;
  gemm_work(p, rows, n, k, WeightType::bf16);
  p.time_s = ratio * product_form.seconds(p, truth.data());
  return p;
}

// A kernel that is slower than the form for few rows and faster for many, smoothly.
std::vector<FitPoint> smooth(bool repeated = false) {
  std::vector<FitPoint> points;
  for (double rows = 16; rows <= 8192; rows *= 2) points.push_back(point(rows, 4096, 4096, 1.2 - 0.04 * std::log2(rows / 16), repeated));
  return points;
}

}  // namespace

BOOST_AUTO_TEST_CASE(exact_points_hold_the_measured_time_over_the_forms) {
  CostSpec c = costs();
  const std::vector<ExactFit> fits = fit_exact(c, "gb300", smooth());
  BOOST_REQUIRE_EQUAL(fits.size(), 1);
  BOOST_TEST(fits[0].written);
  BOOST_TEST(fits[0].curves == 1);
  BOOST_TEST(fits[0].points == 10);
  BOOST_TEST(fits[0].inner == 8);
  BOOST_TEST(fits[0].interpolated_error < 0.02);
  BOOST_TEST(fits[0].form_error > 0.03);
  const ExactCurve* curve = c.exact("dense_bf16", {.n = 4096, .k = 4096});
  BOOST_REQUIRE(curve);
  BOOST_TEST(curve->rows.front() == 16);
  BOOST_TEST(curve->ratio.front() == 1.2, tt::tolerance(1e-3));
  BOOST_TEST(curve->ratio.back() == 0.84, tt::tolerance(1e-3));
  BOOST_CHECK((curve->basis == Basis::published));
  BOOST_TEST(curve->source == "a table");
}

BOOST_AUTO_TEST_CASE(points_that_scatter_more_than_the_form_misses_are_dropped) {
  CostSpec c = costs();
  c.families["dense_bf16"].exact = {{.shape = {.n = 4096, .k = 4096}, .rows = {1, 2}, .ratio = {1, 1}, .basis = Basis::published, .source = "of old"}};
  std::vector<FitPoint> points;
  int i = 0;
  for (double rows = 16; rows <= 8192; rows *= 2) points.push_back(point(rows, 4096, 4096, ++i % 2 == 0 ? 1.08 : 0.92));
  const std::vector<ExactFit> fits = fit_exact(c, "gb300", points);
  BOOST_REQUIRE_EQUAL(fits.size(), 1);
  BOOST_TEST(!fits[0].written);
  BOOST_TEST(fits[0].interpolated_error >= fits[0].form_error);
  BOOST_TEST(c.families["dense_bf16"].exact.empty());
}

BOOST_AUTO_TEST_CASE(rows_that_l2_held_keep_the_forms_time_from_memory) {
  CostSpec c = costs();
  BOOST_REQUIRE(fit_exact(c, "gb300", smooth(true)).front().written);
  const ExactCurve* curve = c.exact("dense_bf16", {.n = 4096, .k = 4096});
  BOOST_REQUIRE(curve);
  BOOST_TEST(curve->ratio.front() == 1.2, tt::tolerance(1e-3));  // over the form with weights from L2
  const FitPoint cold = point(16, 4096, 4096, 1), warm = point(16, 4096, 4096, 1.2, true);
  BOOST_TEST(curve->ratio.front() * cold.time_s > 1.05 * warm.time_s);  // what a step takes: more than the table's time
  CostSpec unknown = costs(false);
  const ExactFit fit = fit_exact(unknown, "gb300", smooth(true)).front();
  BOOST_TEST(!fit.written);
  BOOST_TEST(fit.cached == 9);  // all but the one of most rows
  BOOST_TEST(fit.points == 0);
}

BOOST_AUTO_TEST_CASE(points_without_a_near_neighbour_and_those_of_other_gpus_are_not_exact) {
  CostSpec c = costs();
  std::vector<FitPoint> points = smooth();
  points.push_back(point(1, 4096, 4096, 1.5));        // 16 times fewer than the next
  points.push_back(point(64, 7168, 16384, 1.5));      // a shape of two points far apart
  points.push_back(point(4096, 7168, 16384, 1.5));
  points.push_back(point(32, 4096, 4096, 3));
  points.back().basis = Basis::transferred;
  points.push_back(point(64, 4096, 4096, 3));
  points.back().gpu = "b200";
  const ExactFit fit = fit_exact(c, "gb300", points).front();
  BOOST_TEST(fit.curves == 1);
  BOOST_TEST(fit.points == 10);
}

BOOST_AUTO_TEST_CASE(of_several_sources_of_a_shape_the_measured_one_counts_then_the_one_with_most_points) {
  CostSpec c = costs();
  std::vector<FitPoint> points = smooth();
  for (const FitPoint& p : smooth()) {
    points.push_back(p);
    points.back().source = "ours";
    points.back().basis = Basis::measured;
    points.back().time_s *= 1.1;
  }
  points.erase(points.end() - 2, points.end());  // fewer, but measured
  BOOST_REQUIRE(fit_exact(c, "gb300", points).front().written);
  const ExactCurve* curve = c.exact("dense_bf16", {.n = 4096, .k = 4096});
  BOOST_REQUIRE(curve);
  BOOST_TEST(curve->source == "ours");
  BOOST_CHECK((curve->basis == Basis::measured));
  for (FitPoint& p : points) p.basis = Basis::published;
  fit_exact(c, "gb300", points);
  BOOST_TEST(c.exact("dense_bf16", {.n = 4096, .k = 4096})->source == "a table");
}

BOOST_AUTO_TEST_CASE(fused_experts_get_a_curve_for_every_number_of_ranks) {
  const std::vector<double> fused = {70, -1, 6000, 3000, 500, 3};
  CostSpec c;
  c.name = c.gpu = "gb300";
  for (std::size_t i = 0; i < fused.size(); ++i)
    c.families["moe_fused"].parameters[std::string(fused_form.parameters[i].name)] = {fused[i], fused[i], fused[i], Basis::published, "test"};
  std::vector<FitPoint> points;
  for (const double ranks : {8., 32.})
    for (double tokens = 64; tokens <= 8192; tokens *= 2) {
      FitPoint p;
      p.gpu = "gb300";
      p.family = "moe_fused";
      p.source = "a table";
      p.repeated = true;
      fused_expert_work(p, {7168, 3072, 384, 6}, tokens, ranks, WeightType::fp4);
      p.time_s = (ranks == 8 ? 0.95 : 1.1) * fused_form.seconds(p, fused.data());
      points.push_back(p);
    }
  const ExactFit fit = fit_exact(c, "gb300", points).front();
  BOOST_TEST(fit.written);
  BOOST_TEST(fit.curves == 2);
  BOOST_TEST(fit.points == 16);
  const ExactCurve* curve = c.exact("moe_fused", {.hidden = 7168, .intermediate = 3072, .experts = 384, .top_k = 6, .ranks = 32});
  BOOST_REQUIRE(curve);
  BOOST_TEST(curve->rows.front() == 64);
  for (const double ratio : curve->ratio) BOOST_TEST(ratio == 1.1, tt::tolerance(1e-3));
}
