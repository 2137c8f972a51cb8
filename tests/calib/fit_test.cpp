// The fitter finds known parameters again, says which ones points cannot tell, and reads files of others.
#define BOOST_TEST_MODULE fit
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <unistd.h>

#include "calib/fit_costs.hpp"
#include "calib/fit_host.hpp"
#include "calib/fit_import.hpp"
#include "calib/fit_work.hpp"
#include "sim/base/error.hpp"
#include "tests/support/recorded_data.hpp"

using namespace rackcast;
using namespace rackcast::calib;

namespace {

std::vector<FitPoint> gemm_points(double noise) {
  std::vector<FitPoint> points;
  std::mt19937_64 random(7);
  const std::vector<double> truth = {5, 800, 4000, 2};
  for (const double m : {1., 16., 64., 256., 1024., 4096., 16384.})
    for (const double n : {1536., 4096., 7168.}) {
      FitPoint p;
      p.gpu = "h200";
      p.family = "dense_bf16";
      p.source = "test";
      gemm_work(p, m, n, 4096, WeightType::bf16);
      const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
      p.time_s = roofline_form.seconds(p, truth.data()) * std::exp(noise * (2 * uniform - 1));
      points.push_back(p);
    }
  return points;
}

struct File {
  explicit File(const std::string& text) : path((std::filesystem::temp_directory_path() / "rackcast_fit_test.csv").string()) {
    std::ofstream(path) << text;
  }
  ~File() { std::remove(path.c_str()); }
  std::string path;
};

}  // namespace

BOOST_AUTO_TEST_CASE(known_parameters_are_found_again) {
  const FamilyFit fit = fit_family(roofline_form, gemm_points(0), {10, 300, 1000, 1});
  BOOST_CHECK_CLOSE(fit.parameters[0].value, 5, 0.1);
  BOOST_CHECK_CLOSE(fit.parameters[1].value, 800, 0.1);
  BOOST_CHECK_CLOSE(fit.parameters[2].value, 4000, 0.1);
  BOOST_CHECK_SMALL(fit.range.mean_error, 1e-4);
}

BOOST_AUTO_TEST_CASE(noise_widens_intervals_that_still_hold_the_truth) {
  const FamilyFit fit = fit_family(roofline_form, gemm_points(0.1), {10, 300, 1000, 1});
  BOOST_CHECK_LT(fit.parameters[1].lo, 800 * 1.03);
  BOOST_CHECK_GT(fit.parameters[1].hi, 800 * 0.97);
  BOOST_CHECK_GT(fit.parameters[1].hi, 1.005 * fit.parameters[1].lo);
  BOOST_CHECK_GT(fit.range.cross_validated_error, 0.02);
  BOOST_CHECK_LT(fit.range.cross_validated_error, 0.12);
}

BOOST_AUTO_TEST_CASE(a_fit_keeps_its_errors_and_what_its_points_spanned) {
  std::vector<FitPoint> points = gemm_points(0.1);
  const FamilyFit fit = fit_family(roofline_form, points, {10, 300, 1000, 1});
  BOOST_TEST(fit.range.points == static_cast<int>(points.size()));
  BOOST_CHECK_GT(fit.range.p90_error, fit.range.mean_error);
  const AxisSpan &gflop = fit.range.spans[static_cast<std::size_t>(RangeAxis::gflop)], &mb = fit.range.spans[static_cast<std::size_t>(RangeAxis::mb)];
  BOOST_CHECK_CLOSE(gflop.lo, 2 * 1.0 * 1536 * 4096 * 1e-9, 1e-9);
  BOOST_CHECK_CLOSE(gflop.hi, 2 * 16384.0 * 7168 * 4096 * 1e-9, 1e-9);
  BOOST_CHECK_CLOSE(mb.lo, (1536 * 4096 * 2 + 4096 * 2 + 1536 * 2) * 1e-6, 1e-9);
  BOOST_TEST(!fit.range.spans[static_cast<std::size_t>(RangeAxis::ranks)].given());  // a matrix has none
}

BOOST_AUTO_TEST_CASE(judged_parameters_stay_and_stand_beside_their_error_on_the_points) {
  std::vector<FitPoint> points = gemm_points(0);
  for (FitPoint& p : points) p.time_s *= 1.1;
  CostSpec prior;
  prior.gpu = "h200";
  CostFamily& family = prior.families["dense_bf16"];
  family.form = "product";
  for (const auto& [name, value] : {std::pair{"t0_us", 5.0}, {"mma_tflops", 800.0}, {"hbm_gbs", 4000.0}, {"p", 2.0}}) family.parameters[name] = {value, value, value, Basis::assumed, "us"};
  const CostFit judged = judge_costs(prior, "h200", points, {.bootstraps = 20});
  const CostFamily& out = judged.costs.families.at("dense_bf16");
  BOOST_TEST(out.parameters.at("mma_tflops").value == 800);
  BOOST_TEST(out.parameters.at("mma_tflops").source == "us");
  BOOST_TEST_REQUIRE(out.range.has_value());
  BOOST_CHECK_CLOSE(out.range->mean_error, 1 - 1 / 1.1, 1);
  BOOST_CHECK_LT(out.range->cross_validated_error, 0.02);  // a fit would meet them
  const AxisSpan& gflop = out.range->spans[static_cast<std::size_t>(RangeAxis::gflop)];
  for (const FitPoint& p : points) BOOST_TEST(gflop.holds(p.flops * 1e-9));  // rounded outwards
  for (FitPoint& p : points) p.time_s *= 1.3;
  const CostFit off = judge_costs(judged.costs, "h200", points, {.bootstraps = 20});
  BOOST_TEST(off.costs.families.at("dense_bf16").range->mean_error == out.range->mean_error);  // its range stays as it was
  BOOST_TEST_REQUIRE(off.notes.size() == 1u);
  BOOST_TEST(off.notes[0].find("% off these points; its range stays as it was") != std::string::npos);
  points.resize(2);
  BOOST_TEST(judge_costs(judged.costs, "h200", points, {.bootstraps = 20}).costs.families.at("dense_bf16").range->points == out.range->points);
  for (const FittedParameter& p : judged.families.at(0).parameters) BOOST_TEST(p.fallback == "kept");
  prior.families.clear();
  BOOST_TEST(judge_costs(prior, "h200", points, {.bootstraps = 20}).costs.families.empty());
}

BOOST_AUTO_TEST_CASE(one_outlier_does_not_carry_the_fit_away) {
  std::vector<FitPoint> points = gemm_points(0);
  points[10].time_s *= 10;
  const FamilyFit fit = fit_family(roofline_form, points, {10, 300, 1000, 1});
  BOOST_CHECK_CLOSE(fit.parameters[1].value, 800, 5);
  BOOST_CHECK_CLOSE(fit.parameters[2].value, 4000, 8);
}

BOOST_AUTO_TEST_CASE(a_parameter_that_points_cannot_tell_keeps_its_prior_and_says_why) {
  std::vector<FitPoint> points = gemm_points(0.02);
  std::erase_if(points, [](const FitPoint& p) { return p.flops < 1e11; });  // compute only: bandwidth has no say
  const FamilyFit fit = fit_family(roofline_form, points, {6, 700, 4321, 2});
  BOOST_CHECK_EQUAL(fit.parameters[2].value, 4321);
  BOOST_CHECK(!fit.parameters[2].fallback.empty());
  BOOST_CHECK_CLOSE(fit.parameters[1].value, 800, 5);
}

BOOST_AUTO_TEST_CASE(one_team_size_cannot_tell_a_slope_over_teams) {
  std::vector<FitPoint> points;
  for (const double bytes : {1e3, 1e5, 1e6, 1e7, 1e8, 1e9}) {
    FitPoint p;
    p.family = "a2a_dispatch";
    p.ranks = 8;
    p.link_bytes = bytes;
    p.time_s = 15e-6 + bytes / 5e11;
    points.push_back(p);
  }
  const FamilyFit fit = fit_family(exchange_form, points, {10, 2, 400});
  BOOST_CHECK_EQUAL(fit.parameters[1].value, 2);
  BOOST_CHECK_EQUAL(fit.parameters[1].fallback, "one team size only");
  BOOST_CHECK_CLOSE(fit.parameters[0].value, 9, 1);
}

BOOST_AUTO_TEST_CASE(a_parameter_that_no_point_depends_on_keeps_its_prior) {
  std::vector<FitPoint> points = gemm_points(0);
  for (FitPoint& p : points) p.units = 0;  // no rows
  std::vector<double> prior;
  for (const Parameter& p : row_form.parameters) prior.push_back(p.name == "row_ns" ? 9 : p.positive ? std::sqrt(p.low * p.high) : 0);
  const FamilyFit fit = fit_family(row_form, points, prior);
  for (const FittedParameter& p : fit.parameters) {
    if (p.name != "row_ns") continue;
    BOOST_TEST(p.value == 9);
    BOOST_TEST(p.fallback == "no point depends on it");
  }
}

BOOST_AUTO_TEST_CASE(points_bring_their_form_and_forms_are_not_mixed) {
  std::vector<FitPoint> points;
  for (const double bytes : {1e4, 1e5, 1e6, 1e7, 1e8}) {
    FitPoint p;
    p.gpu = "h200";
    p.family = "a2a_dispatch";
    p.form = "unique";
    p.source = "test";
    p.ranks = 2;
    p.link_bytes = bytes;
    p.time_s = 7e-6 + bytes / 345e9;
    points.push_back(p);
  }
  CostSpec prior;
  prior.families["a2a_dispatch"].form = "copies";
  prior.families["a2a_dispatch"].parameters["link_gbs"].value = 200;
  const CostFit fit = fit_costs(prior, "h200", points, {});
  BOOST_TEST(fit.costs.families.at("a2a_dispatch").form == "unique");
  BOOST_CHECK_CLOSE(fit.costs.families.at("a2a_dispatch").parameters.at("link_gbs").value, 345, 1);
  points.back().form = "copies";
  const CostFit mixed = fit_costs(prior, "h200", points, {});
  BOOST_TEST(mixed.costs.families.at("a2a_dispatch").form == "copies");
  BOOST_TEST(mixed.costs.families.at("a2a_dispatch").parameters.at("link_gbs").value == 200);
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_fit) {
  const auto points = gemm_points(0.1);
  const FamilyFit one = fit_family(roofline_form, points, {10, 300, 1000, 1}), two = fit_family(roofline_form, points, {10, 300, 1000, 1});
  for (std::size_t k = 0; k < 4; ++k) {
    BOOST_CHECK_EQUAL(one.parameters[k].value, two.parameters[k].value);
    BOOST_CHECK_EQUAL(one.parameters[k].lo, two.parameters[k].lo);
  }
}

BOOST_AUTO_TEST_CASE(gpus_are_known_by_the_names_that_tables_use) {
  BOOST_CHECK_EQUAL(gpu_name("NVIDIA H200"), "h200");
  BOOST_CHECK_EQUAL(gpu_name("b200_sxm"), "b200");
  BOOST_CHECK_EQUAL(gpu_name("GB300"), "gb300");
  BOOST_CHECK_EQUAL(gpu_name("H20"), "");
  BOOST_CHECK_EQUAL(gpu_name("B200?"), "");
}

BOOST_AUTO_TEST_CASE(shape_texts_are_read_by_name_unit_and_place) {
  const ShapeText s("7168/3072/384/top6;tok/rank=128;dist=balanced");
  BOOST_CHECK_EQUAL(s.number("hidden"), 7168);
  BOOST_CHECK_EQUAL(s.number("topk"), 6);
  BOOST_CHECK_EQUAL(s.number("tok/rank"), 128);
  BOOST_CHECK_EQUAL(s.word("dist"), "balanced");
  const ShapeText t("32tok/rank,4096,top6,256e");
  BOOST_CHECK_EQUAL(t.number("tok/rank"), 32);
  BOOST_CHECK_EQUAL(t.number("#0"), 4096);
  BOOST_CHECK_EQUAL(t.number("e"), 256);
  BOOST_CHECK_THROW(t.number("hidden"), UserError);
}

BOOST_AUTO_TEST_CASE(rows_without_a_family_are_counted_by_reason) {
  const File file("family,op,shape,dtype,gpu,ranks,latency_us,source,note\n"
                  "gemm,dense gemm,\"m=16,n=4096,k=4096\",bfloat16,H200,1,12.5,s,\n"
                  "gemm,dense gemm,\"m=16,n=4096,k=4096\",int4,H200,1,12.5,s,\n"
                  "poetry,sonnet,14,,H200,1,3,s,\n");
  const Imported found = import_points(file.path);
  BOOST_CHECK_EQUAL(found.points.size(), 1);
  BOOST_CHECK_EQUAL(found.left_out.size(), 2);
  const File other("a,b\n1,2\n");
  BOOST_CHECK_THROW(import_points(other.path), UserError);
}

BOOST_AUTO_TEST_CASE(our_own_measurements_become_measured_points) {
  const Imported found = import_points(RACKCAST_SOURCE_DIR "/scenarios/measurements/h200/quick-experts.jsonl");
  BOOST_REQUIRE(!found.points.empty());
  for (const FitPoint& p : found.points) {
    BOOST_CHECK_EQUAL(p.gpu, "h200");
    BOOST_CHECK(p.basis == Basis::measured);
    BOOST_CHECK(p.time_s > 0 && p.flops > 0 && p.bytes > 0);
  }
}

BOOST_AUTO_TEST_CASE(published_kernel_tables_fit_as_well_as_they_are_known_to) {
  const auto points_file = test_support::recorded_data("silicon/kernel_points.csv");
  if (!points_file) return;
  const std::vector<FitPoint> points = import_points(*points_file).points;
  const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});
  for (const auto& [gpu, family, bound] : {std::tuple{"gb300", "dense_bf16", 0.12}, {"h200", "moe_fp8", 0.08}, {"gb300", "moe_fp8", 0.10},
                                           {"gb300", "moe_fused", 0.08}, {"gb200", "a2a_dispatch", 0.10}, {"h200", "a2a_dispatch", 0.15}}) {
    std::vector<FitPoint> chosen;
    for (const FitPoint& p : points)
      if (p.family == family) chosen.push_back(p);
    const CostFit fit = fit_costs(read_costs(catalog, gpu), gpu, chosen, {.bootstraps = 20});
    BOOST_REQUIRE_EQUAL(fit.families.size(), 1);
    BOOST_CHECK_MESSAGE(fit.families[0].range.cross_validated_error < bound, gpu << ' ' << family << ' ' << fit.families[0].range.cross_validated_error);
  }
}

BOOST_AUTO_TEST_CASE(nccl_tests_output_becomes_collective_points) {
  const std::string path = (std::filesystem::temp_directory_path() / "rackcast_all_reduce_perf.txt").string();
  std::ofstream(path) << "# nThread 1 nGpus 2 minBytes 1024 maxBytes 2048 step: 2(factor) warmup iters: 5 iters: 20\n"
                         "#  Rank  0 Group  0 Pid  9 on node1 device  0 [0x19] NVIDIA H200\n"
                         "#  Rank  1 Group  0 Pid  9 on node1 device  1 [0x20] NVIDIA H200\n"
                         "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
                         "        1024           256     float     sum      -1    10.50    0.10    0.10      0    10.20    0.10    0.10      0\n"
                         "     1048576        262144     float     sum      -1    20.00   52.43   52.43      0    20.10   52.17   52.17      0\n";
  const Imported found = import_points(path);
  std::remove(path.c_str());
  BOOST_REQUIRE_EQUAL(found.points.size(), 2u);
  BOOST_CHECK_EQUAL(found.points[1].gpu, "h200");
  BOOST_CHECK_EQUAL(found.points[1].family, "nccl_all_reduce");
  BOOST_CHECK_EQUAL(found.points[1].ranks, 2);
  BOOST_CHECK_CLOSE(found.points[1].link_bytes, 1048576.0, 1e-9);  // 2 x 1/2 of the message
  BOOST_CHECK_CLOSE(found.points[1].time_s, 20e-6, 1e-9);
}

BOOST_AUTO_TEST_CASE(exchange_tables_count_a_token_once_a_rank_or_once_an_expert) {
  const std::string head = "gpu,part,mode,ranks,tokens,hidden,topk,experts,bytes_per_value,latency_us,source\n";
  const File file(head + "H200,dispatch,unique,8,4096,7168,8,256,1,500,x\nH200,dispatch,copies,8,128,7168,8,256,1,77,x\n");
  const Imported found = import_points(file.path);
  BOOST_REQUIRE_EQUAL(found.points.size(), 2u);
  BOOST_CHECK_EQUAL(found.points[0].family, "a2a_dispatch");
  BOOST_CHECK_CLOSE(found.points[1].link_bytes, 128.0 * 8 * 7168 * 7 / 8, 1e-6);
  BOOST_CHECK_LT(found.points[0].link_bytes, 4096.0 * 8 * 7168 * 7 / 8);
  const File wrong(head + "H200,sideways,unique,8,4096,7168,8,256,1,500,x\n");
  BOOST_CHECK_THROW(import_points(wrong.path), UserError);
}

BOOST_AUTO_TEST_CASE(whole_forwards_are_kept_with_their_case) {
  const File file("gpu,model,dep,tp,case,latency_ms\nGB300,deepseek-v4.1-flash,32,,16*6@64K,8.86\n");
  const Imported found = import_points(file.path);
  BOOST_REQUIRE_EQUAL(found.points.size(), 1u);
  BOOST_CHECK_EQUAL(found.points[0].shape, "case 16*6@64K");
  BOOST_CHECK_EQUAL(found.points[0].ranks, 32);
  const File both("gpu,model,dep,tp,case,latency_ms\nGB300,deepseek-v4.1-flash,32,8,16*6@64K,8.86\n");
  BOOST_CHECK_THROW(import_points(both.path), UserError);
}

BOOST_AUTO_TEST_CASE(a_bandwidth_above_the_memorys_specification_is_not_believed) {
  const auto points = gemm_points(0);  // made with 4,000 GB/s
  const FamilyFit fit = fit_family(roofline_form, points, {10, 300, 3500, 1}, {.largest_hbm_gbs = 3600});
  BOOST_CHECK_EQUAL(fit.parameters[2].value, 3500);
  BOOST_CHECK(!fit.parameters[2].fallback.empty());
}

BOOST_AUTO_TEST_CASE(a_step_log_gives_the_hosts_scatter_and_what_the_gpu_hides) {
  std::string log = "gpu,requests,gpu_us,wall_us\n";
  for (int i = 0; i < 100; ++i) {
    const int requests = 1 + i % 10;
    const double delay = -100 * std::log(1 - (i * 37 % 100 + 0.5) / 100);  // exponential, mean 100 us
    log += "H200," + std::to_string(requests) + ",5000," + std::to_string(5000 + 500 + 10 * requests + delay) + "\n";
  }
  for (int i = 0; i < 25; ++i) log += "H200,4,5000,5000\n";
  const File file(log);
  const Imported found = import_points(file.path);
  BOOST_REQUIRE_EQUAL(found.points.size(), 100u);
  CostSpec prior;
  prior.gpu = "h200";
  CostFit fit = fit_costs(prior, "h200", found.points, {.bootstraps = 20});
  describe_host(fit, found.points, found.left_out.at(std::string(hidden_host_time)));
  const auto& host = fit.costs.families.at("host").parameters;
  BOOST_CHECK_CLOSE(host.at("jitter_us").value, 100, 25);
  BOOST_CHECK_CLOSE(host.at("overlap").value, 0.2, 1e-6);
  BOOST_CHECK_CLOSE(host.at("h0_us").value, 500, 15);
}

BOOST_AUTO_TEST_CASE(measurements_of_shapes_that_we_do_not_know_are_counted_not_fatal) {
  std::ifstream in(RACKCAST_SOURCE_DIR "/scenarios/measurements/h200/quick-experts.jsonl");
  std::string header, line;
  std::getline(in, header);
  while (std::getline(in, line) && line.find("\"op\":\"dense\"") == std::string::npos) {}
  const std::string axis = "\"batch\":1,";
  BOOST_REQUIRE(line.find(axis) != std::string::npos);
  std::string lacks = line, worded = line;
  lacks.erase(lacks.find(axis), axis.size());
  worded.replace(worded.find(axis), axis.size(), "\"batch\":\"one\",");
  const std::string path = (std::filesystem::temp_directory_path() / ("rackcast_foreign_" + std::to_string(getpid()) + ".jsonl")).string();
  std::ofstream(path) << header << "\n" << lacks << "\n" << worded << "\n";
  const Imported found = import_points(path);
  std::filesystem::remove(path);
  BOOST_TEST(found.points.empty());
  BOOST_REQUIRE(found.left_out.count("dense: a shape without batch") == 1);
  BOOST_TEST(found.left_out.at("dense: a shape without batch") == 2);
}
