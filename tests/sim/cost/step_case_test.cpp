#define BOOST_TEST_MODULE step_case
#include "sim/cost/step_case.hpp"

#include <boost/test/unit_test.hpp>

#include "sim/base/error.hpp"

using namespace rackcast;

namespace {

std::string refusal(const std::string& text) {
  try {
    parse_case(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_full_item_is_read) {
  const CaseItem item = parse_case("16*6@128K:5").front();
  BOOST_CHECK_EQUAL(item.requests, 16);
  BOOST_CHECK_EQUAL(item.query_tokens, 6);
  BOOST_CHECK_EQUAL(item.context, 131072);
  BOOST_CHECK_EQUAL(item.draft_tokens, 5);
  BOOST_CHECK(!item.chunked);
}

BOOST_AUTO_TEST_CASE(what_is_left_out_has_a_default) {
  const CaseItem item = parse_case("2K").front();
  BOOST_CHECK_EQUAL(item.requests, 1);
  BOOST_CHECK_EQUAL(item.query_tokens, 2048);
  BOOST_CHECK_EQUAL(item.context, 2048);
  BOOST_CHECK(parse_case("8K@1Mc").front().chunked);
}

BOOST_AUTO_TEST_CASE(items_add_up_to_one_batch) {
  ModelSpec model;
  model.draft = DraftSpec{.kind = DraftKind::dspark, .max_tokens = 5};
  const RankBatch b = batch_of(parse_case("16*6@100:5,2*7@50"), model, CasePhase::automatic);
  BOOST_CHECK_EQUAL(b.decode_tokens, 96);
  BOOST_CHECK_EQUAL(b.decode_query_context, 9600);
  BOOST_CHECK_EQUAL(b.draft_requests, 16);
  BOOST_CHECK_EQUAL(b.prefill_tokens, 14);  // 7 is more than 1 + 5
  BOOST_CHECK_EQUAL(b.prefill_query_context, 14 * 46.5);
}

BOOST_AUTO_TEST_CASE(the_phase_may_be_forced) {
  const ModelSpec model;
  BOOST_CHECK_EQUAL(batch_of(parse_case("1@9"), model, CasePhase::prefill).prefill_tokens, 1);
  BOOST_CHECK_EQUAL(batch_of(parse_case("9"), model, CasePhase::decode).decode_tokens, 9);
}

BOOST_AUTO_TEST_CASE(a_prefill_chunk_has_a_tail_of_at_most_its_own_length) {
  RankBatch b;
  add_prefill(b, 1, 100, 1000, 128);
  BOOST_CHECK_EQUAL(b.prefill_tail_tokens, 100);
  add_prefill(b, 1, 1000, 1000, 128);
  BOOST_CHECK_EQUAL(b.prefill_tail_tokens, 228);
  BOOST_CHECK_EQUAL(b.prefill_tail_query_context, 100 * 950 + 128 * 936);
}

BOOST_AUTO_TEST_CASE(broken_items_are_refused_with_the_reason) {
  BOOST_CHECK_NE(refusal("").find("positive whole number"), std::string::npos);
  BOOST_CHECK_NE(refusal("0*1").find("positive whole number"), std::string::npos);
  BOOST_CHECK_NE(refusal("16*6@5").find("K includes Q"), std::string::npos);
  BOOST_CHECK_NE(refusal("16*6@64Kx").find("'x' was not expected"), std::string::npos);
  BOOST_CHECK_NE(refusal("16*6@64K,").find("item ''"), std::string::npos);
  BOOST_CHECK_NE(refusal("99999999999*6@64K").find("2^30 tokens"), std::string::npos);
  BOOST_CHECK_NE(refusal("16**6").find("Q must be"), std::string::npos);
  BOOST_CHECK_THROW(draft_tokens_of(parse_case("1:3,1:5")), UserError);
}
