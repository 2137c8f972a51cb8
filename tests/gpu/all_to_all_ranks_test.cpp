// The all-to-all protocol on a real GPU: virtual ranks in one cooperative launch, under delays and late stores.
#define BOOST_TEST_MODULE all_to_all_ranks
#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "kernels/all_to_all_soak.hpp"

using namespace rackcast::a2a;

namespace {

struct NeedsGpu {
  NeedsGpu() {
    if (!gpu_here()) std::exit(77);  // skipped
  }
};

Shape shape_of(int ranks, Payload payload) {
  return {.ranks = ranks, .tokens_max = 1024, .hidden = 512, .top_k = 6, .experts_per_rank = 4, .payload = payload};
}

}  // namespace

BOOST_TEST_GLOBAL_FIXTURE(NeedsGpu);

BOOST_AUTO_TEST_CASE(the_gpus_reference_is_the_cpus) {
  for (const Payload payload : {Payload::bf16, Payload::fp8_block}) {
    Shape shape = shape_of(4, payload);
    shape.hidden = 4096;
    BOOST_TEST(reference_differences(shape, 40, 3) == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_thousand_epochs_without_reset_on_2_4_8_and_32_virtual_ranks) {
  for (const int ranks : {2, 4, 8, 32}) {
    const SoakResult soak = soak_virtual_ranks(shape_of(ranks, ranks == 4 ? Payload::bf16 : Payload::fp8_block), 1000, 11, false);
    BOOST_TEST(soak.epochs == 1000);
    BOOST_TEST(soak.differences == 0u);
    BOOST_TEST(!soak.hung);
    BOOST_TEST_MESSAGE(ranks << " ranks: " << soak.tokens << " tokens in " << soak.epochs << " epochs");
  }
}

BOOST_AUTO_TEST_CASE(without_the_release_before_a_flag_values_differ) {
  for (const Payload payload : {Payload::bf16, Payload::fp8_block})
    BOOST_TEST(soak_virtual_ranks(shape_of(4, payload), 20, 13, true).differences > 0u);
}
