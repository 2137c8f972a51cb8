#define BOOST_TEST_MODULE permute
#include "kernels/permute.hpp"

#include <boost/test/unit_test.hpp>
#include <set>

#include "kernels/family.hpp"
#include "kernels/formats.hpp"

using namespace rackcast::kernels;

BOOST_AUTO_TEST_CASE(a_token_never_chooses_an_expert_twice) {
  for (const char* spread : {"balanced", "zipf14"}) {
    const auto ids = draw_expert_ids(200, 16, 6, spread, 3);
    BOOST_REQUIRE(ids.size() == 1200u);
    for (std::size_t token = 0; token < 200; ++token)
      BOOST_TEST(std::set<int>(ids.begin() + static_cast<std::ptrdiff_t>(token * 6), ids.begin() + static_cast<std::ptrdiff_t>(token * 6 + 6)).size() == 6u);
  }
}

BOOST_AUTO_TEST_CASE(work_matches_hand_numbers) {
  const auto shape = [](const char* part) {
    return Shape().set("part", part).set("tokens", 2).set("hidden", 5120).set("experts", 384).set("top_k", 6).set("spread", "balanced").set("align", 128);
  };
  // a token: 10,240 read; six rows of 5,120 + 160; six ids and positions
  BOOST_TEST(find_family("permute")->work(shape("permute")).bytes_hbm == 2 * (10240.0 + 6 * 5280 + 48));
  // a token: six rows, the shared expert's and y, 10,240 each; six positions and weights
  BOOST_TEST(find_family("permute")->work(shape("unpermute")).bytes_hbm == 2 * (8 * 10240.0 + 48));
}

BOOST_AUTO_TEST_CASE(unpermute_adds_the_weighted_rows_to_the_shared_expert) {
  const std::vector<double> rows = {1, 2, 10, 20, 100, 200};
  const auto y = reference_unpermute(rows, {2, 0}, {0.5, 2.0}, {7, 8}, 2);
  BOOST_TEST(y == (std::vector<double>{7 + 50 + 2, 8 + 100 + 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(quantised_values_come_back_within_half_a_step) {
  std::vector<double> row(256);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = (static_cast<double>(i) - 100.5) * (i < 128 ? 0.01 : 3.0);
  const QuantisedRow q = reference_quantise(row);
  BOOST_REQUIRE(q.scales.size() == 2u);
  BOOST_TEST(q.scales[0] < q.scales[1]);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double scale = q.scales[i / 128];
    BOOST_TEST(std::abs(e4m3_value(q.codes[i]) * scale - row[i]) <= e4m3_step(std::abs(row[i] / scale)) * scale / 2 * (1 + 1e-12));
  }
}

BOOST_AUTO_TEST_CASE(the_node_chain_covers_both_kinds_of_launch) {
  std::set<std::int64_t> kinds;
  for (const Shape& shape : find_family("node_chain")->grid(Grid::quick)) kinds.insert(shape.number("pdl"));
  BOOST_TEST(kinds.size() == 2u);
}
