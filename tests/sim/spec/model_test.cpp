// The shipped models against the sizes that their makers or public tables state.
#define BOOST_TEST_MODULE model
#include <boost/test/unit_test.hpp>

#include "sim/base/catalog.hpp"
#include "sim/cost/shapes.hpp"
#include "sim/spec/model.hpp"

using namespace rackcast;

namespace {

ModelSpec model(const std::string& name) {
  const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});
  return read_yaml_as<ModelSpec>(catalog.find("models", name), catalog.read_options());
}

void check_totals(const std::string& name, double total_b, double active_b, double draft_b) {
  const ModelTotals totals = model_totals(model(name));
  BOOST_CHECK_CLOSE(totals.parameters / 1e9, total_b, 0.3);
  BOOST_CHECK_CLOSE(totals.active_decode / 1e9, active_b, 2.0);
  if (draft_b > 0) BOOST_CHECK_CLOSE(totals.draft_parameters / 1e9, draft_b, 1.5);
}

}  // namespace

BOOST_AUTO_TEST_CASE(parameter_counts_match_the_published_ones) {
  check_totals("deepseek-v4.1-flash", 551.6, 15.82, 14.23);
  check_totals("deepseek-v4-flash", 284.33, 13.27, 6.61);
  check_totals("deepseek-v4-pro", 1573, 48.8, 25.8);
  check_totals("deepseek-r1", 671.0, 37.0, 0);
  check_totals("kimi-k2.5", 1026, 32.0, 0);
}

BOOST_AUTO_TEST_CASE(a_prompt_token_of_v41_meets_half_of_the_layers) {
  const ModelTotals totals = model_totals(model("deepseek-v4.1-flash"));
  BOOST_CHECK_CLOSE(totals.active_prefill / 1e9, 7.9, 1.0);
  BOOST_CHECK_CLOSE(totals.engram_parameters / 1e9, 196.6, 0.1);
  BOOST_CHECK_CLOSE(totals.routed_bytes / 1e9, 288.8, 0.1);
  BOOST_CHECK_CLOSE(totals.dense_bytes / 1e9, 9.85, 2.0);
  BOOST_CHECK_CLOSE(totals.draft_bytes / 1e9, 7.93, 1.0);
}

BOOST_AUTO_TEST_CASE(attention_and_expert_shapes_of_v41_match_the_checkpoint) {
  const ModelSpec v41 = model("deepseek-v4.1-flash");
  double attention = 0;
  for (const Matrix& m : matrices(v41, 5))
    if (m.part == Part::attention && m.name.find("index") == std::string::npos)
      attention += m.layers * m.batch * m.k * m.n;
  BOOST_CHECK_EQUAL(attention / 40, 126615552);
  BOOST_CHECK_EQUAL(expert_parameters(v41), 35389440);
  BOOST_CHECK_CLOSE(expert_parameters(v41) * bytes_per_weight(WeightType::fp4), 18800640, 1e-9);
}

BOOST_AUTO_TEST_CASE(kv_bytes_per_token_match_the_published_ones) {
  const ModelSpec v41 = model("deepseek-v4.1-flash");
  BOOST_CHECK_EQUAL(v41.kv_bytes_per_token(KvFormat::nvfp4), 890);
  BOOST_CHECK_EQUAL(v41.kv_bytes_per_token(KvFormat::fp8_layout), 1630);
  BOOST_CHECK_EQUAL(model("deepseek-v4-flash").kv_bytes_per_token(KvFormat::nvfp4), 3514.25);
  BOOST_CHECK_EQUAL(model("deepseek-v4-flash").kv_bytes_per_token(KvFormat::fp8_layout), 3850.25);
  BOOST_CHECK_CLOSE(model("deepseek-v4-pro").kv_bytes_per_token(KvFormat::nvfp4), 5031, 0.02);
  BOOST_CHECK_CLOSE(model("deepseek-v4-pro").kv_bytes_per_token(KvFormat::fp8_layout), 5511, 0.02);
  BOOST_CHECK_EQUAL(model("deepseek-r1").kv_bytes_per_token(KvFormat::nvfp4), 40016);
  BOOST_CHECK_EQUAL(model("deepseek-r1").kv_bytes_per_token(KvFormat::fp8_layout), 70272);
}

BOOST_AUTO_TEST_CASE(fixed_bytes_per_request_match_the_published_ones) {
  const ModelSpec v41 = model("deepseek-v4.1-flash");
  BOOST_CHECK_EQUAL(v41.kv_fixed_bytes(KvFormat::nvfp4, false), 2703360 + 98304);
  BOOST_CHECK_EQUAL(v41.kv_fixed_bytes(KvFormat::nvfp4, true), 2703360 + 98304 + 202752);
  BOOST_CHECK_EQUAL(model("deepseek-v4-flash").kv_fixed_bytes(KvFormat::nvfp4, false), 3214336 + 11345920);
  BOOST_CHECK_EQUAL(model("deepseek-r1").kv_fixed_bytes(KvFormat::nvfp4, false), 0);
}
