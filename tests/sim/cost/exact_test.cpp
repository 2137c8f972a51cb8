// Measured points of single matrices: what a step takes at them, between them, and beyond them.
#define BOOST_TEST_MODULE exact
#include "sim/cost/exact.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include "sim/base/error.hpp"
#include "sim/cost/draws.hpp"
#include "sim/cost/experts.hpp"
#include "sim/cost/operators.hpp"
#include "sim/cost/step_case.hpp"
#include "sim/cost/step_model.hpp"

using namespace rackcast;
namespace tt = boost::test_tools;

namespace {

const Catalog& catalog() {
  static const Catalog found({RACKCAST_SOURCE_DIR "/scenarios"});
  return found;
}

// 5 us, a weight read of 10 us, or 0.1 us a row
double form_us(double rows) { return 5 + p_norm(0.1 * rows, 10 + 0.001 * rows, 4); }

ExactTimes times(std::vector<int> rows, std::vector<double> ratio) {
  return {{.shape = {.n = 1, .k = 1}, .rows = std::move(rows), .ratio = std::move(ratio), .basis = Basis::measured, .source = "test"}, form_us};
}

double at(const ExactTimes& t, double rows) { return t.seconds(rows, form_us(rows)); }

// Steps of 1/400 of a doubling, far beyond both ends.
void check_rising_and_continuous(const std::function<double(double)>& seconds, double from, double to) {
  double last = seconds(from);
  for (double rows = from; rows < to; rows *= std::exp2(1.0 / 400)) {
    const double now = seconds(rows);
    BOOST_REQUIRE_GE(now, last * (1 - 1e-12));
    BOOST_REQUIRE_LE(now, last * 1.02);
    last = now;
  }
}

struct File {
  explicit File(const std::string& exact) : path((std::filesystem::temp_directory_path() / ("rackcast_exact_" + std::to_string(getpid()) + ".yaml")).string()) {
    std::ofstream(path) << "name: t\ngpu: h200\nfamilies:\n  dense_fp8:\n    form: product\n    exact:\n" << exact;
  }
  ~File() { std::filesystem::remove(path); }
  std::string path;
};

std::string refusal(const std::string& exact) {
  const File file(exact);
  try {
    read_yaml_as<CostSpec>(read_source(file.path));
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

StepContext context(const CostSpec& costs, const std::string& model, int ranks, bool tensor_parallel) {
  StepContext c;
  c.model = read_yaml_as<ModelSpec>(catalog().find("models", model), catalog().read_options());
  c.gpu = read_yaml_as<GpuSpec>(catalog().find("gpus", costs.gpu), catalog().read_options());
  c.costs = costs;
  c.ranks = ranks;
  c.tensor_parallel = tensor_parallel;
  return c;
}

std::vector<Operator> operators_of(const StepContext& c) {
  FeatureMap map(c.model, c.kv_format, c.draft_tokens, 1);
  return build_operators(c, map);
}

// V4.1-Flash's q down and kv: 1792 columns of 5120
const Operator& find(const std::vector<Operator>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Operator& op) { return op.name == name; });
  BOOST_REQUIRE(found != all.end());
  return *found;
}

CostSpec with_points(std::vector<int> rows, std::vector<double> ratio) {
  CostSpec costs = read_costs(catalog(), "gb300");
  costs.families["dense_fp8"].exact = {{.shape = {.n = 1792, .k = 5120}, .rows = std::move(rows), .ratio = std::move(ratio), .basis = Basis::measured, .source = "test"}};
  return costs;
}

Features rows_of(const Operator& op, double rows) {
  Features x{};
  x[static_cast<std::size_t>(op.gate)] = rows;
  return x;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_point_is_met_exactly_and_the_ratio_is_linear_in_the_logarithm_between_neighbours) {
  const ExactTimes t = times({64, 128, 512}, {1.1, 1.2, 0.9});
  BOOST_TEST(at(t, 64) == 1.1 * form_us(64), tt::tolerance(1e-12));
  BOOST_TEST(at(t, 128) == 1.2 * form_us(128), tt::tolerance(1e-12));
  BOOST_TEST(at(t, 512) == 0.9 * form_us(512), tt::tolerance(1e-12));
  BOOST_TEST(at(t, 256) == std::sqrt(1.2 * 0.9) * form_us(256), tt::tolerance(1e-12));
  BOOST_TEST(at(t, 64 * std::exp2(0.25)) == 1.1 * std::pow(1.2 / 1.1, 0.25) * form_us(64 * std::exp2(0.25)), tt::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(a_ratio_fades_to_the_form_over_a_factor_of_four_beyond_the_ends_and_in_sparse_gaps) {
  const ExactTimes t = times({64, 128, 65536}, {0.9, 0.9, 1.3});
  BOOST_TEST(at(t, 256) == std::pow(0.9, 0.5) * form_us(256), tt::tolerance(1e-12));
  BOOST_TEST(at(t, 512) == form_us(512), tt::tolerance(1e-12));
  BOOST_TEST(at(t, 4096) == form_us(4096), tt::tolerance(1e-12));
  BOOST_TEST(at(t, 32768) == std::pow(1.3, 0.5) * form_us(32768), tt::tolerance(1e-12));
  BOOST_TEST(at(t, 1 << 20) == form_us(1 << 20), tt::tolerance(1e-12));
  BOOST_TEST(t.share(8) == 0);
  BOOST_TEST(t.share(100) == 1);
  BOOST_TEST(t.share(256) == 0.5, tt::tolerance(1e-12));
  BOOST_TEST(t.share(4096) == 0);
  const ExactTimes eight = times({64, 512}, {0.9, 1.1});  // fades to the middle of a gap of less than 16
  BOOST_TEST(at(eight, 64 * std::sqrt(8.0)) == form_us(64 * std::sqrt(8.0)), tt::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(time_is_continuous_and_never_falls_whatever_the_points) {
  for (const auto& [rows, ratio] : {std::pair<std::vector<int>, std::vector<double>>{{1, 2, 4, 8, 16, 32}, {1.5, 0.7, 1.2, 0.6, 1.4, 0.8}},
                                    {{64, 128, 256, 512, 1024}, {0.6, 1.3, 0.9, 0.8, 0.7}},
                                    {{16, 4096, 16384}, {1.6, 0.7, 0.8}},
                                    {{1, 16, 64, 128, 256, 1024, 4096, 16384}, {1.5, 0.8, 1.1, 1.1, 0.9, 1.2, 0.8, 1.1}},
                                    {{300}, {2}},
                                    {{300}, {0.5}},
                                    {{100, 900}, {1.4, 0.5}}}) {
    const ExactTimes t = times(rows, ratio);
    check_rising_and_continuous([&](double x) { return at(t, x); }, 0.01, 1e7);
  }
}

BOOST_AUTO_TEST_CASE(a_form_that_saturates_does_not_make_time_fall) {
  const auto saturating_us = [](double tokens) { return 70 + 190 * (1 - std::exp(-tokens / 12)) + 0.05 * tokens; };
  const ExactTimes t({.shape = {.n = 1, .k = 1}, .rows = {64, 128, 256}, .ratio = {0.95, 1.02, 1.01}, .basis = Basis::measured, .source = "test"}, saturating_us, true);
  check_rising_and_continuous([&](double x) { return t.seconds(x, saturating_us(x)); }, 1, 1e5);
  BOOST_TEST(t.seconds(128, saturating_us(128)) == 1.02 * saturating_us(128), tt::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(points_whose_time_falls_with_more_rows_are_pooled) {
  std::vector<double> values = {3, 1, 2, 5, 4, 6};
  make_isotonic(values);
  BOOST_TEST(values == (std::vector<double>{2, 2, 2, 4.5, 4.5, 6}), tt::per_element());
  std::vector<double> rising = {1, 2, 2, 3};
  make_isotonic(rising);
  BOOST_TEST(rising == (std::vector<double>{1, 2, 2, 3}), tt::per_element());
  const ExactTimes t = times({1, 2}, {1.2, 0.9});  // about 15 us each: 18 and 13.5
  BOOST_TEST(at(t, 1) == std::sqrt(1.2 * 0.9 * form_us(1) * form_us(2)), tt::tolerance(1e-12));
  BOOST_TEST(at(t, 2) == at(t, 1), tt::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(an_operator_takes_what_was_measured_and_has_the_points_basis) {
  const CostSpec costs = with_points({64, 256, 1024}, {1.2, 1.1, 1.15});
  const std::vector<Operator> with = operators_of(context(costs, "deepseek-v4.1-flash", 32, false)),
                              without = operators_of(context(read_costs(catalog(), "gb300"), "deepseek-v4.1-flash", 32, false));
  const Operator &exact = find(with, "q down + kv"), &plain = find(without, "q down + kv");
  BOOST_TEST(exact.seconds(rows_of(exact, 256)) == 1.1 * plain.seconds(rows_of(plain, 256)), tt::tolerance(1e-12));
  BOOST_TEST(exact.seconds(rows_of(exact, 1 << 20)) == plain.seconds(rows_of(plain, 1 << 20)), tt::tolerance(1e-12));
  BOOST_CHECK((exact.basis(rows_of(exact, 256)) == Basis::measured));
  BOOST_CHECK((exact.basis(rows_of(exact, 1 << 20)) == plain.form.basis));
  BOOST_CHECK((exact.basis(rows_of(exact, 2000)) == plain.form.basis));  // the weaker of both
  BOOST_CHECK(exact.exact.share(256) == 1);
  BOOST_CHECK(plain.exact.empty());
}

BOOST_AUTO_TEST_CASE(a_step_says_where_its_time_is_exact) {
  const StepContext c = context(with_points({64, 256, 1024}, {1.2, 1.1, 1.15}), "deepseek-v4.1-flash", 4, false);
  const auto model = make_step_model(c);
  const auto shape_at = [&](const char* text) {
    const std::vector<RankBatch> ranks(4, batch_of(parse_case(text), c.model, CasePhase::automatic));
    double sum = 0;
    std::string shape;
    for (const OperatorCost& op : model->operators(ranks)) {
      sum += op.time_s;
      if (op.name == "q down + kv") shape = op.shape_text();
    }
    BOOST_TEST(sum == model->step(ranks).total_s, tt::tolerance(1e-9));
    return shape;
  };
  BOOST_TEST(shape_at("256*1@8K") == "256 x5120x1792, exact");
  BOOST_TEST(shape_at("8*1@8K") == "8 x5120x1792");
}

BOOST_AUTO_TEST_CASE(beside_the_experts_the_ratio_moves_the_work_alone) {
  CostSpec costs = read_costs(catalog(), "h200");
  costs.families["dense_fp8"].exact = {{.shape = {.n = 7168, .k = 2048}, .rows = {64, 128, 256}, .ratio = {1.1, 1.15, 1.2}, .basis = Basis::measured, .source = "test"}};
  const std::vector<Operator> all = operators_of(context(costs, "deepseek-r1", 8, false));
  const Operator& down = find(all, "shared expert down");
  BOOST_REQUIRE(!down.exact.empty());
  BOOST_TEST(down.launches == 0);
  const Features x = rows_of(down, 128);
  BOOST_TEST(down.seconds(x) == 1.15 * down.layers * down.form_s(x), tt::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(fused_experts_over_as_many_ranks_take_what_was_measured) {
  CostSpec costs = read_costs(catalog(), "gb300");
  const ExactCurve curve{.shape = {.hidden = 7168, .intermediate = 3072, .experts = 384, .top_k = 6, .ranks = 16},
                         .rows = {64, 128, 256, 512}, .ratio = {0.9, 0.92, 0.95, 0.97}, .basis = Basis::measured, .source = "test"};
  costs.families["moe_fused"].exact = {curve};
  CostSpec plain = costs;
  plain.families["moe_fused"].exact.clear();
  const auto side = [](const StepContext& c) { return ExpertSide(c, {61, 384, 6, true}); };
  const StepContext with = context(costs, "deepseek-v4-pro", 16, false), without = context(plain, "deepseek-v4-pro", 16, false);
  for (const double tokens : {1., 64., 181., 256., 512., 1e5}) {
    const double expected = tokens == 64 ? 0.9 : tokens == 256 ? 0.95 : tokens == 512 ? 0.97 : 1, ratio = side(with).seconds(tokens, 16 * tokens, nullptr, 0) / side(without).seconds(tokens, 16 * tokens, nullptr, 0);
    if (tokens == 181) BOOST_TEST(ratio == std::sqrt(0.92 * 0.95), tt::tolerance(1e-4));
    else BOOST_TEST(ratio == expected, tt::tolerance(1e-9));
  }
  const StepContext wider = context(costs, "deepseek-v4-pro", 32, false), wider_plain = context(plain, "deepseek-v4-pro", 32, false);
  BOOST_TEST(side(wider).seconds(256, 32 * 256, nullptr, 0) == side(wider_plain).seconds(256, 32 * 256, nullptr, 0));
  std::array<ExpertCost, ExpertSide::max_rows> parts;
  BOOST_REQUIRE_EQUAL(side(with).evaluate(256, 16 * 256, nullptr, 0, parts), 1);
  BOOST_TEST(parts[0].exact);
  BOOST_CHECK((parts[0].basis == Basis::measured));
  const std::vector<double> sent(16, 256);
  BOOST_TEST(side(with).phases(sent, nullptr, 0).gain == 0.95 * side(without).phases(sent, nullptr, 0).gain, tt::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(fused_kernels_of_the_low_latency_path_know_no_points_of_the_tables) {
  StepContext c = context(with_points({1, 2, 4}, {1.3, 1.2, 1.1}), "deepseek-v4.1-flash", 4, true);
  c.path = EnginePath::low_latency;
  for (const Operator& op : operators_of(c)) BOOST_CHECK(op.exact.empty());
}

BOOST_AUTO_TEST_CASE(the_ratio_survives_draws_and_scaled_families) {
  const CostSpec central = with_points({64, 256, 1024}, {1.2, 1.1, 1.15}), plain = read_costs(catalog(), "gb300");
  for (const auto& change : {std::function<CostSpec(const CostSpec&)>([](const CostSpec& c) { return draw_costs(c, 1, 3); }),
                             std::function<CostSpec(const CostSpec&)>([](const CostSpec& c) { return scale_costs(c, "dense_fp8", 1.1); })}) {
    const std::vector<Operator> with = operators_of(context(change(central), "deepseek-v4.1-flash", 32, false)),
                                without = operators_of(context(change(plain), "deepseek-v4.1-flash", 32, false));
    const Operator &exact = find(with, "q down + kv"), &form = find(without, "q down + kv");
    BOOST_TEST(exact.seconds(rows_of(exact, 256)) == 1.1 * form.seconds(rows_of(form, 256)), tt::tolerance(1e-9));
  }
}

BOOST_AUTO_TEST_CASE(no_curve_of_a_shipped_cost_file_falls_with_more_rows) {
  int curves = 0;
  for (const std::string& name : catalog().names("costs"))
    for (const auto& [family, content] : read_costs(catalog(), name).families)
      for (const ExactCurve& curve : content.exact) {
        ++curves;
        const CostSpec costs = read_costs(catalog(), name);
        if (exact_layers(family)) {
          const StepContext c = context(costs, "deepseek-v4-pro", curve.shape.ranks, false);
          BOOST_REQUIRE(curve.shape.hidden == c.model.hidden);
          const ExpertSide side(c, {1, c.model.experts.count, c.model.experts.top_k, true});
          check_rising_and_continuous([&](double tokens) { return side.seconds(tokens, tokens * c.ranks, nullptr, 0); }, 1, 1e5);
          continue;
        }
        ParameterReader read(costs, "");
        const Roofline form = read.roofline(family);
        const double per_weight = family == "dense_bf16" ? 2 : family == "dense_fp8" ? 1 : 0.5625, input = family == "dense_bf16" ? 2 : 1;
        const double n = curve.shape.n, k = curve.shape.k;
        const double weights = std::max(n * k * per_weight, k * read.value_or(family, "k_ns", 0) * 1e-9 * form.bytes_per_s);
        const auto seconds = [&](double rows) { return form.seconds(2 * rows * n * k, weights + rows * (k * input + 2 * n)); };
        const ExactTimes t(curve, seconds);
        check_rising_and_continuous([&](double rows) { return t.seconds(rows, seconds(rows)); }, 0.1, 1e6);
      }
  BOOST_TEST_MESSAGE(curves << " curves");
}

BOOST_AUTO_TEST_CASE(a_cost_file_with_points_is_read_and_written_again) {
  const File file("      - {outputs: 8, inputs: 16, rows: [1, 2], ratio: [1, 1.25], basis: measured, source: us}\n");
  const CostSpec costs = read_yaml_as<CostSpec>(read_source(file.path));
  BOOST_REQUIRE(costs.exact("dense_fp8", {.n = 8, .k = 16}));
  BOOST_TEST(costs.exact("dense_fp8", {.n = 8, .k = 16})->ratio[1] == 1.25);
  BOOST_CHECK(!costs.exact("dense_fp8", {.n = 16, .k = 8}));
  BOOST_CHECK(!costs.exact("dense_bf16", {.n = 8, .k = 16}));
  const std::string text = yaml_of(costs);
  BOOST_TEST(text.find("ratio: [1, 1.25]") != std::string::npos);
  BOOST_TEST(yaml_of(read_costs(catalog(), "h100")).find("exact: []") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(bad_points_are_refused_where_they_stand) {
  const auto refused = [](const std::string& exact, const std::string& rule) {
    const std::string message = refusal("      - {" + exact + "}\n");
    BOOST_CHECK_MESSAGE(message.find(rule) != std::string::npos, exact << ": " << message);
    BOOST_CHECK_MESSAGE(message.find(".yaml:7:") != std::string::npos, message);
  };
  refused("outputs: 8, inputs: 16, rows: [1, 2], ratio: [1], basis: measured, source: us", "must hold as many numbers as rows");
  refused("outputs: 8, inputs: 16, rows: [2, 1], ratio: [1, 1], basis: measured, source: us", "must rise");
  refused("outputs: 8, inputs: 16, rows: [2, 2], ratio: [1, 1], basis: measured, source: us", "must rise");
  refused("outputs: 8, inputs: 16, rows: [0, 2], ratio: [1, 1], basis: measured, source: us", "must be 1 to");
  refused("outputs: 8, inputs: 16, rows: [], ratio: [], basis: measured, source: us", "must hold 1 to 256 numbers");
  refused("outputs: 8, inputs: 16, rows: [1, 2], ratio: [1, 0], basis: measured, source: us", "must be 0.05 to 20");
  refused("outputs: 8, inputs: 16, rows: [1, 2], ratio: [1, .nan], basis: measured, source: us", "ratio");
  refused("outputs: 0, inputs: 16, rows: [1, 2], ratio: [1, 1], basis: measured, source: us", "give outputs and inputs, or");
  refused("outputs: 8, rows: [1, 2], ratio: [1, 1], basis: measured, source: us", "give outputs and inputs, or");
  refused("outputs: 8, inputs: 16, rows: [1, 2], ratio: [1, 1], basis: guessed, source: us", "basis");
  refused("outputs: 8, inputs: 16, rows: [1, 2], ratio: [1, 1], basis: measured", "source");
  refused("outputs: 8, inputs: 16, axis: 3, rows: [1, 2], ratio: [1, 1], basis: measured, source: us", "axis");
  const std::string one = "      - {outputs: 8, inputs: 16, rows: [1, 2], ratio: [1, 1], basis: measured, source: us}\n";
  BOOST_TEST(refusal(one + one).find("must hold one curve a shape") != std::string::npos);
  BOOST_TEST(refusal(one + "  mhc:\n    exact:\n" + one).find("of matrices in families dense_*") != std::string::npos);
}
