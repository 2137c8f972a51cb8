#define BOOST_TEST_MODULE moe_gemm
#include "kernels/moe_gemm.hpp"

#include <boost/test/unit_test.hpp>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "kernels/family.hpp"

using namespace rackcast::kernels;

namespace {

const Family& family() { return *find_family("moe_gemm"); }

Shape shape(const char* part, int hidden, int inter, int experts, int rows, const char* spread, const char* weights) {
  return Shape().set("part", part).set("hidden", hidden).set("inter", inter).set("experts", experts).set("rows", rows).set("spread", spread).set("weights", weights).set("layout", "masked");
}

std::int64_t sum(const std::vector<std::int32_t>& counts) { return std::accumulate(counts.begin(), counts.end(), std::int64_t{0}); }

}  // namespace

BOOST_AUTO_TEST_CASE(every_spread_hands_out_exactly_the_rows) {
  for (const char* spread : {"equal", "multinomial", "zipf06", "zipf10", "zipf14", "hot"})
    for (const std::int64_t rows : {0, 1, 7, 1000}) BOOST_TEST(sum(draw_expert_rows(12, rows, spread)) == rows);
}

BOOST_AUTO_TEST_CASE(equal_rows_differ_by_at_most_one_and_hot_gives_half_to_one) {
  const auto equal = draw_expert_rows(12, 30, "equal");
  BOOST_TEST(*std::max_element(equal.begin(), equal.end()) - *std::min_element(equal.begin(), equal.end()) == 1);
  BOOST_TEST(draw_expert_rows(12, 30, "hot")[0] == 15);
  const auto skewed = draw_expert_rows(32, 10000, "zipf10");
  BOOST_TEST(skewed[0] > 5 * skewed[20]);
}

BOOST_AUTO_TEST_CASE(segments_are_aligned_and_do_not_overlap) {
  const GroupedLayout contiguous = make_layout({0, 1, 128, 129}, "contiguous");
  BOOST_TEST(contiguous.offset == (std::vector<std::int32_t>{0, 0, 128, 256}), boost::test_tools::per_element());
  BOOST_TEST(contiguous.rows == 512);
  const GroupedLayout masked = make_layout({0, 1, 129}, "masked");
  BOOST_TEST(masked.offset == (std::vector<std::int32_t>{0, 256, 512}), boost::test_tools::per_element());
  BOOST_TEST(masked.rows == 768);
}

BOOST_AUTO_TEST_CASE(every_packed_weight_has_a_nibble_of_its_own) {
  std::set<std::pair<int, bool>> places;
  for (int row = 0; row < 256; ++row)
    for (int k = 0; k < 128; ++k) {
      const PackedPlace place = packed_place(row, k);
      BOOST_REQUIRE(place.byte >= 0 && place.byte < packed_scales_at);
      places.emplace(place.byte, place.high_nibble);
    }
  BOOST_TEST(places.size() == 256u * 128u);
}

// Hand numbers: V4-Flash, 32 experts of 8 rows: 256 rows x 6 x 4096 x 2048 = 12.885 GFLOP; weights 32 x 3 x 4096 x 2048 bytes.
BOOST_AUTO_TEST_CASE(work_matches_hand_numbers) {
  const Work fp8 = family().work(shape("both", 4096, 2048, 32, 256, "equal", "fp8"));
  BOOST_TEST(fp8.flop == 12884901888.0);
  BOOST_TEST(fp8.flop_padded == 12884901888.0);  // eight rows fill an eight-wide tile
  BOOST_TEST(fp8.touched == 32.0);
  const double weights = 805306368.0, activations = 256.0 * ((4096 + 2048) * 1.03125 + 2048 * 1.03125 + 8192);
  BOOST_TEST(fp8.bytes_hbm == weights * (1 + 1.0 / 4096) + activations, boost::test_tools::tolerance(1e-12));
  const Work fp4 = family().work(shape("both", 4096, 2048, 32, 256, "equal", "mxfp4"));
  BOOST_TEST(fp4.bytes_hbm == weights * 0.53125 + activations, boost::test_tools::tolerance(1e-12));
  const Work few = family().work(shape("up", 5120, 2304, 12, 3, "equal", "fp8"));
  BOOST_TEST(few.touched == 3.0);
  BOOST_TEST(few.flop == 3.0 * 4 * 5120 * 2304);
  BOOST_TEST(few.flop_padded == 24.0 * 4 * 5120 * 2304);
}

BOOST_AUTO_TEST_CASE(the_reference_multiplies_clamps_and_gates) {
  // One token of ones, depth 4; 16 rows: gates 0..7 are i - 4 times four, ups are 1 (row 15: 100, which the clamp stops at 10).
  std::vector<double> weights(16 * 4, 0.0);
  for (int i = 0; i < 8; ++i)
    for (int k = 0; k < 4; ++k) {
      weights[static_cast<std::size_t>(gate_row(i) * 4 + k)] = i - 4;
      weights[static_cast<std::size_t>(up_row(i) * 4 + k)] = i == 7 ? 25 : 0.25;
    }
  const auto h = reference_up({1, 1, 1, 1}, weights, 4);
  BOOST_REQUIRE(h.size() == 8u);
  BOOST_TEST(h[4] == 0.0);
  BOOST_TEST(h[5] == 4 / (1 + std::exp(-4.0)), boost::test_tools::tolerance(1e-12));
  BOOST_TEST(h[0] == -16 / (1 + std::exp(16.0)), boost::test_tools::tolerance(1e-12));
  BOOST_TEST(h[7] == 10 / (1 + std::exp(-10.0)) * 10, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(reference_down({1, 2}, {3, 4, 5, 6}, 2) == (std::vector<double>{11, 17}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(grids_have_no_duplicates_and_the_quick_one_is_part_of_a_small_budget) {
  for (const Grid grid : {Grid::quick, Grid::full, Grid::bench, Grid::sanitize}) {
    std::set<std::string> keys;
    for (const Shape& one : family().grid(grid)) BOOST_TEST(keys.insert(one.key()).second);
  }
  BOOST_TEST(family().grid(Grid::quick).size() <= 60u);
  BOOST_TEST(family().grid(Grid::sanitize).size() <= 40u);
}
