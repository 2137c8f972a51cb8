#define BOOST_TEST_MODULE indexer_topk
#include <boost/test/unit_test.hpp>

#include "kernels/indexer.hpp"
#include "kernels/topk.hpp"

using namespace rackcast::kernels;

namespace rackcast::kernels {
const Family& indexer_family();
}

BOOST_AUTO_TEST_CASE(negative_dots_count_nothing_and_weights_may_be_negative) {
  const std::vector<double> query = {1, 0, -1, 0, 2, 0}, weights = {3, 5, -1}, key = {2, 7};
  BOOST_TEST(indexer_reference(query, weights, key, 0.5) == 0.5 * (3 * 2 + 0 - 4));
}

BOOST_AUTO_TEST_CASE(an_index_logit_is_16384_flop_at_64_heads) {
  const Shape shape = Shape().set("requests", 2).set("query_tokens", 3).set("keys", 1000).set("heads", 64).set("form", "dense").set("format", "fp8");
  const Work work = indexer_family().work(shape);
  BOOST_TEST(work.flop == 16384.0 * 6 * 1000);
  BOOST_TEST(work.bytes_hbm == 2 * 1000 * 132.0 + 6 * (64 * 132.0 + 4000));
}

BOOST_AUTO_TEST_CASE(an_fp4_key_is_68_bytes) {
  const Shape shape = Shape().set("requests", 2).set("query_tokens", 3).set("keys", 1000).set("heads", 64).set("form", "dense").set("format", "fp4");
  BOOST_TEST(indexer_family().work(shape).bytes_hbm == 2 * 1000 * 68.0 + 6 * (64 * 132.0 + 4000));
}

BOOST_AUTO_TEST_CASE(sparse_tokens_read_their_own_keys) {
  const Shape shape = Shape().set("requests", 1).set("query_tokens", 2).set("keys", 16384).set("heads", 32).set("form", "sparse").set("format", "fp8");
  const Work work = indexer_family().work(shape);
  BOOST_TEST(work.touched == 4096.0);
  BOOST_TEST(work.bytes_hbm == 2 * 16384 * 132.0 + 2 * (32 * 132.0 + 16384 * 4) + 4096 * 4);
}

BOOST_AUTO_TEST_CASE(a_right_selection_in_any_order_is_accepted) {
  const std::vector<float> scores = {1, 5, 3, 4, 2};
  BOOST_TEST(topk_problem(scores, 1, std::vector<std::int32_t>{3, 1}, 2) == "");
}

BOOST_AUTO_TEST_CASE(any_of_equal_scores_will_do) {
  const std::vector<float> scores = {1, 5, 5, 5};
  BOOST_TEST(topk_problem(scores, 1, std::vector<std::int32_t>{3, 1}, 2) == "");
}

BOOST_AUTO_TEST_CASE(each_kind_of_wrong_selection_is_named) {
  const std::vector<float> scores = {1, 5, 3, 4};
  BOOST_TEST(topk_problem(scores, 1, std::vector<std::int32_t>{1, 2}, 2) == "a larger score was left out");
  BOOST_TEST(topk_problem(scores, 1, std::vector<std::int32_t>{1, 1}, 2) == "index 1 is chosen twice");
  BOOST_TEST(topk_problem(scores, 1, std::vector<std::int32_t>{1, 4}, 2) == "index 4 is no candidate");
  BOOST_TEST(topk_problem(scores, 1, std::vector<std::int32_t>{1}, 2) == "too few indices");
}

BOOST_AUTO_TEST_CASE(fewer_candidates_than_k_fill_up_with_minus_one) {
  const std::vector<float> scores = {1, 5};
  BOOST_TEST(topk_problem(scores, 1, std::vector<std::int32_t>{1, 0, -1}, 3) == "");
  BOOST_TEST(topk_problem(scores, 1, std::vector<std::int32_t>{1, 0, 0}, 3) == "a place beyond the candidates is not -1");
}

BOOST_AUTO_TEST_CASE(groups_compete_with_their_maximum) {
  const std::vector<float> scores = {0, 0, 0, 0, 0, 0, 0, 9, 8, 8, 8, 8, 8, 8, 8, 8};
  BOOST_TEST(topk_problem(scores, 8, std::vector<std::int32_t>{0}, 1) == "");
  BOOST_TEST(topk_problem(scores, 8, std::vector<std::int32_t>{1}, 1) == "a larger score was left out");
}
