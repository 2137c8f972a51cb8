#define BOOST_TEST_MODULE all_to_all
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "kernels/all_to_all_reference.hpp"
#include "tests/support/host_ranks.hpp"

using namespace rackcast;
using namespace rackcast::a2a;

namespace {

Shape small(int ranks, Payload payload = Payload::bf16) {
  return {.ranks = ranks, .tokens_max = 64, .hidden = 512, .top_k = 6, .experts_per_rank = 4, .payload = payload};
}

std::vector<int> token_counts(int ranks, int most, uint64_t seed) {
  Draws draws(seed);
  std::vector<int> counts;
  for (int r = 0; r < ranks; ++r) counts.push_back(static_cast<int>(draws.below(static_cast<uint64_t>(most) + 1)));
  return counts;
}

}  // namespace

BOOST_AUTO_TEST_CASE(expected_copies_are_the_published_ones_for_six_of_many_experts) {
  // c(R, 6): 3.29, 4.41, 5.14, 5.56 for 4, 8, 16, 32 ranks (drawn with replacement), a little more without.
  for (const auto& [ranks, copies] : {std::pair{4, 3.29}, {8, 4.41}, {16, 5.14}, {32, 5.56}}) {
    BOOST_CHECK_CLOSE(expected_copies(ranks, 1 << 20, 6), copies, 0.2);
    BOOST_CHECK_GT(expected_copies(ranks, 384, 6), copies);
  }
  BOOST_CHECK_EQUAL(expected_copies(1, 256, 6), 1);
}

BOOST_AUTO_TEST_CASE(drawn_balanced_tokens_have_the_expected_copies_and_add_up) {
  Shape shape = small(8);
  shape.experts_per_rank = 32;
  std::vector<RankTokens> ranks;
  for (int r = 0; r < 8; ++r) ranks.push_back(draw_tokens(shape, "balanced", 4096, static_cast<uint64_t>(r)));
  const Volume v = volume(shape, ranks);
  BOOST_CHECK_CLOSE(static_cast<double>(v.copies) / static_cast<double>(v.tokens), expected_copies(8, 256, 6), 1.0);
  int64_t out = 0;
  int64_t in = 0;
  for (int64_t copies : v.egress) out += copies;
  for (int64_t copies : v.ingress) in += copies;
  BOOST_CHECK_EQUAL(out, in);
  BOOST_CHECK_CLOSE(static_cast<double>(out) / static_cast<double>(v.copies), 7.0 / 8.0, 1.0);
}

BOOST_AUTO_TEST_CASE(a_hot_expert_shows_in_ingress_and_not_in_egress) {
  Shape shape = small(8);
  shape.experts_per_rank = 32;
  std::vector<RankTokens> ranks;
  for (int r = 0; r < 8; ++r) ranks.push_back(draw_tokens(shape, "all_to_one", 100, static_cast<uint64_t>(r)));
  const Volume v = volume(shape, ranks);
  BOOST_CHECK_EQUAL(v.ingress_max(), 700);  // every other rank's tokens, once each: six experts, one copy
  BOOST_CHECK_EQUAL(v.egress_max(), 100);
  BOOST_CHECK_EQUAL(v.egress[0], 0);
  BOOST_CHECK_EQUAL(v.copies, 800);
}

BOOST_AUTO_TEST_CASE(row_bytes_are_those_of_the_model_notes) {
  Shape shape = small(8, Payload::fp8_block);
  shape.hidden = 5120;
  BOOST_CHECK_EQUAL(6 * shape.payload_bytes(), 31680);     // FP8 with a scale per 32 values, six copies
  BOOST_CHECK_EQUAL(6 * shape.combine_row_bytes(), 61440);
  shape.hidden = 4096;
  BOOST_CHECK_EQUAL(6 * shape.payload_bytes(), 25344);
  BOOST_CHECK_EQUAL(6 * shape.combine_row_bytes(), 49152);
}

BOOST_AUTO_TEST_CASE(parts_of_a_window_do_not_overlap_and_stay_inside) {
  const Shape shape = small(3, Payload::fp8_block);
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (uint32_t epoch : {1U, 2U})
    for (int source = 0; source < 3; ++source) {
      for (int slot = 0; slot < shape.tokens_max; ++slot) {
        parts.emplace_back(shape.dispatch_row(epoch, source, slot), shape.dispatch_row_bytes());
        parts.emplace_back(shape.combine_row(epoch, source, slot), shape.combine_row_bytes());
      }
      for (int kind = 0; kind < 3; ++kind) parts.emplace_back(shape.flag(kind, epoch, source), 8);
    }
  std::sort(parts.begin(), parts.end());
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) BOOST_REQUIRE_LE(parts[i].first + parts[i].second, parts[i + 1].first);
  BOOST_CHECK_EQUAL(parts.back().first + parts.back().second, shape.window_bytes());
}

BOOST_AUTO_TEST_CASE(e4m3_rounds_to_even_and_saturates) {
  for (int code = 0; code < 0x7f; ++code) {
    const float value = e4m3_to_float(static_cast<uint8_t>(code));
    BOOST_REQUIRE_EQUAL(float_to_e4m3(value), code);
    BOOST_REQUIRE_EQUAL(float_to_e4m3(-value), code | 0x80);
    if (code == 0x7e) break;
    const float next = e4m3_to_float(static_cast<uint8_t>(code + 1));
    BOOST_REQUIRE_EQUAL(float_to_e4m3((value + next) / 2), code % 2 == 0 ? code : code + 1);
    BOOST_REQUIRE_EQUAL(float_to_e4m3(std::nextafter((value + next) / 2, value)), code);
  }
  BOOST_CHECK_EQUAL(e4m3_to_float(float_to_e4m3(1e6F)), 448.0F);
  BOOST_CHECK_EQUAL(ue8m0_to_float(ue8m0_for(448.0F)), 1.0F);
  BOOST_CHECK_EQUAL(ue8m0_to_float(ue8m0_for(449.0F)), 2.0F);
  BOOST_CHECK_EQUAL(ue8m0_to_float(ue8m0_for(0.0F)), 1.0F);
}

BOOST_AUTO_TEST_CASE(dispatch_then_combine_equals_the_reference_for_every_routing) {
  for (const Payload payload : {Payload::bf16, Payload::fp8_block})
    for (const char* routing : {"balanced", "zipf1.4", "all_to_one"})
      for (const int ranks : {1, 2, 4, 8}) {
        HostRanks host(small(ranks, payload), 2);
        if (ranks == 1 && std::string(routing) == "all_to_one") continue;  // six of four experts
        Shape probe = small(ranks, payload);
        if (shape_problem(probe) != nullptr) continue;
        for (uint64_t e = 1; e <= 4; ++e)
          BOOST_CHECK_MESSAGE(host.epoch(routing, token_counts(ranks, 40, e), e, {.delay_seed = e}),
                              routing << ", " << ranks << " ranks, epoch " << e);
      }
}

BOOST_AUTO_TEST_CASE(a_thousand_epochs_without_reset_under_random_delays) {
  HostRanks host(small(3, Payload::fp8_block), 1);
  const char* routings[] = {"balanced", "zipf1.4", "all_to_one"};
  for (uint64_t e = 1; e <= 1000; ++e)
    BOOST_REQUIRE_MESSAGE(host.epoch(routings[e % 3], token_counts(3, 12, e), e, {.delay_seed = e}), "epoch " << e);
}

BOOST_AUTO_TEST_CASE(thirty_two_ranks_with_none_to_a_full_stripe_of_tokens) {
  HostRanks host(small(32), 1);
  for (uint64_t e = 1; e <= 2; ++e) {
    std::vector<int> counts = token_counts(32, 8, e);
    counts[e] = 64;
    counts[e + 1] = 0;
    BOOST_CHECK(host.epoch("balanced", counts, e, {.delay_seed = e}));
  }
}

BOOST_AUTO_TEST_CASE(without_the_release_before_a_flag_the_check_fails) {
  int failed = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    HostRanks host(small(4), 2);
    bool good = true;
    for (uint64_t e = 1; e <= 4 && good; ++e)
      good = host.epoch("balanced", token_counts(4, 40, e), e, {.delay_seed = seed, .release_left_out = true});
    failed += good ? 0 : 1;
  }
  BOOST_CHECK_EQUAL(failed, 5);
}
