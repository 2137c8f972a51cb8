#define BOOST_TEST_MODULE small
#include "kernels/small.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "kernels/family.hpp"
#include "kernels/route.hpp"

using namespace rackcast::kernels;

namespace {

Work work(const char* op, int tokens, int size) { return find_family("small")->work(Shape().set("op", op).set("tokens", tokens).set("size", size)); }

}  // namespace

BOOST_AUTO_TEST_CASE(a_cache_row_is_normed_and_only_its_last_64_values_turn) {
  const std::vector<double> row(512, 3.0), gain(512, 2.0);
  const CacheRow still = reference_cache_row(row, gain, 0), turned = reference_cache_row(row, gain, 1);
  BOOST_TEST(still.values[0] == 2.0, boost::test_tools::tolerance(1e-6));
  BOOST_TEST(still.values[511] == 2.0, boost::test_tools::tolerance(1e-6));
  BOOST_TEST(turned.values[447] == still.values[447]);
  BOOST_TEST(turned.values[448] == 2 * (std::cos(1.0) - std::sin(1.0)), boost::test_tools::tolerance(1e-6));
  BOOST_TEST(turned.values[449] == 2 * (std::sin(1.0) + std::cos(1.0)), boost::test_tools::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(the_mixing_matrix_is_doubly_stochastic) {
  std::array<double, 24> logits{};
  for (std::size_t i = 0; i < 24; ++i) logits[i] = std::sin(static_cast<double>(i) * 1.7);
  const Mixing mixing = reference_mixing(logits);
  for (std::size_t i = 0; i < 4; ++i) {
    double row = 0, column = 0;
    for (std::size_t j = 0; j < 4; ++j) row += mixing.comb[4 * i + j], column += mixing.comb[4 * j + i];
    BOOST_TEST(row == 1.0, boost::test_tools::tolerance(1e-6));
    BOOST_TEST(column == 1.0, boost::test_tools::tolerance(1e-6));
  }
  BOOST_TEST(mixing.pre[0] == 0.5);
  BOOST_TEST(mixing.post[0] == 2 / (1 + std::exp(-logits[4])));
}

BOOST_AUTO_TEST_CASE(compressing_equal_gates_is_a_mean_that_is_normed) {
  std::vector<double> values(1024, 1.0);
  for (std::size_t i = 512; i < 1024; ++i) values[i] = 3.0;
  const auto out = reference_compress(values, std::vector<double>(1024, 0.3), std::vector<double>(1024, 0.0), std::vector<double>(512, 5.0));
  BOOST_TEST(out[17] == 5.0, boost::test_tools::tolerance(1e-6));  // all equal: norm gives 1 times the gain
}

BOOST_AUTO_TEST_CASE(the_router_prefers_bias_but_weighs_by_score) {
  const Routing routing = reference_route({0, 1, 2, 0}, {10, 0, 0, 0}, 2);
  BOOST_TEST(routing.ids == (std::vector<std::int32_t>{0, 2}), boost::test_tools::per_element());
  BOOST_TEST(routing.weights[0] + routing.weights[1] == 1.5, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(routing.weights[0] / routing.weights[1] == std::sqrt(std::log(2.0) / std::log1p(std::exp(2.0))), boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(work_matches_hand_numbers) {
  BOOST_TEST(work("insert", 10, 512).bytes_hbm == 10 * 1612.0);
  // V4.1: 40,960 B of streams read, 10,240 B of y and 96 B of mixing written; 1.966 MB of weights
  BOOST_TEST(work("mhc_pre", 1, 5120).bytes_hbm == 1966080.0 + 40960 + 10240 + 96);
  BOOST_TEST(work("mhc_post", 1, 5120).bytes_hbm == 2 * 40960.0 + 10240 + 96);
  BOOST_TEST(work("engram", 2, 1).bytes_hbm == 2 * 24 * 780.0);
  BOOST_TEST(work("compress", 256, 128).bytes_hbm == 256 * 4096.0 + 2 * 1024);
  BOOST_TEST(work("verify", 3, 129280).bytes_hbm == 3 * (258560.0 + 16));
  BOOST_TEST(find_family("route")->work(Shape().set("tokens", 96).set("hidden", 5120).set("experts", 384).set("top_k", 6)).flop == 2.0 * 96 * 5120 * 384);
  BOOST_TEST(find_family("host_copy")->work(Shape().set("direction", "to_host").set("bytes", 4096)).bytes_link == 4096.0);
}

// One token of six choices among twelve experts touches six; router and six experts' products.
BOOST_AUTO_TEST_CASE(the_composite_counts_its_parts) {
  const Work layer = find_family("moe_layer")->work(
      Shape().set("tokens", 1).set("hidden", 5120).set("inter", 2304).set("experts", 12).set("top_k", 6).set("weights", "fp8"));
  BOOST_TEST(layer.touched == 6.0, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(layer.flop == 2.0 * 5120 * 12 + 6.0 * 6 * 5120 * 2304);
}
