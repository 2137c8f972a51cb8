#define BOOST_TEST_MODULE attention
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "kernels/latent_splits.hpp"
#include "kernels/mla_attention.hpp"
#include "kernels/sparse_attention.hpp"

using namespace rackcast::kernels;
constexpr double none = -std::numeric_limits<double>::infinity();

BOOST_AUTO_TEST_CASE(two_rows_with_logits_ln3_and_0_weigh_three_to_one) {
  const std::vector<double> query = {std::log(3.0), 0}, keys = {1, 5, 0, 9}, values = {4, 8};
  const AttentionRow row = attention_reference(query, keys, values, 1, 1.0, none);
  BOOST_TEST(row.out.at(0) == 5.0, boost::test_tools::tolerance(1e-12));  // 0.75 * 4 + 0.25 * 8
  BOOST_TEST(row.lse == std::log(4.0), boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(a_sink_takes_weight_and_stays_out_of_the_lse) {
  const std::vector<double> query = {0}, keys = {1, 1}, values = {4, 8};
  const AttentionRow row = attention_reference(query, keys, values, 1, 1.0, std::log(2.0));
  BOOST_TEST(row.out.at(0) == 3.0, boost::test_tools::tolerance(1e-12));  // (4 + 8) / (2 + 2)
  BOOST_TEST(row.lse == std::log(2.0), boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(a_token_without_rows_is_zero_with_lse_minus_infinity) {
  const AttentionRow row = attention_reference(std::vector<double>{1, 2}, {}, {}, 2, 1.0, 0.0);
  BOOST_TEST(row.out == std::vector<double>({0, 0}), boost::test_tools::per_element());
  BOOST_TEST(row.lse == none);
}

BOOST_AUTO_TEST_CASE(the_order_of_rows_does_not_matter) {
  const std::vector<double> query = {0.5, -1}, keys = {1, 2, 3, 4, -1, 0.5}, swapped = {-1, 0.5, 3, 4, 1, 2};
  const AttentionRow a = attention_reference(query, keys, keys, 2, 0.7, 0.1), b = attention_reference(query, swapped, swapped, 2, 0.7, 0.1);
  BOOST_TEST(a.out == b.out, boost::test_tools::tolerance(1e-12) << boost::test_tools::per_element());
}

namespace rackcast::kernels {
const Family& sparse_attention_family();
const Family& mla_attention_family();
}  // namespace rackcast::kernels

BOOST_AUTO_TEST_CASE(one_token_with_640_rows_is_84_megaflop_and_374_kilobytes_of_rows) {
  for (const Shape& shape : sparse_attention_family().grid(Grid::quick)) {
    if (shape.key().find("tokens=1 window=128 selected=512 format=v4 ") != 0) continue;
    const Work work = sparse_attention_family().work(shape);
    BOOST_TEST(work.flop == 83'886'080.0);
    BOOST_TEST(work.bytes_hbm == 640 * 584.0 + 64 * (2048 + 4.0) + 640 * 4.0);
    return;
  }
  BOOST_FAIL("the grid has no such shape");
}

BOOST_AUTO_TEST_CASE(a_v41_token_reads_window_rows_of_528_and_selected_rows_of_288_bytes) {
  BOOST_TEST(kv_row_bytes(KvFormat::v41, false) == 528.0);
  BOOST_TEST(kv_row_bytes(KvFormat::v41, true) == 288.0);
  BOOST_TEST(kv_row_bytes(KvFormat::v4, true) == 584.0);
}

BOOST_AUTO_TEST_CASE(mla_counts_the_causal_triangle) {
  BOOST_TEST(mla_visible_rows(10, 1) == 10.0);
  BOOST_TEST(mla_visible_rows(10, 3) == 27.0);   // 8 + 9 + 10
  BOOST_TEST(mla_visible_rows(10, 10) == 55.0);
  const Shape shape = Shape().set("requests", 2).set("context", 100).set("heads", 16).set("query_tokens", 1).set("lengths", "full");
  const Work work = mla_attention_family().work(shape);
  BOOST_TEST(work.flop == 2 * 100 * 16 * 2.0 * (576 + 512));
  BOOST_TEST(work.flop_padded == 4 * work.flop);  // 16 heads in a tile of 64 rows
  BOOST_TEST(work.bytes_hbm == 200 * 1152.0 + 2 * 16 * (1152 + 1024 + 4.0));
}

BOOST_AUTO_TEST_CASE(splits_cover_every_row_and_never_leave_an_empty_one) {
  for (const int groups : {1, 3, 64, 132, 133, 512})
    for (const int keys : {1, 64, 128, 129, 640, 8320, 131072}) {
      const SplitPlan plan = plan_splits(groups, keys, 132);
      BOOST_TEST(plan.blocks_per_split % 2 == 0);
      BOOST_TEST(plan.splits * plan.blocks_per_split * 64 >= keys);
      BOOST_TEST((plan.splits - 1) * plan.blocks_per_split * 64 < keys);
    }
  BOOST_TEST(plan_splits(1, 640, 132).splits == 5);
  BOOST_TEST(plan_splits(512, 640, 132).splits == 1);
}
