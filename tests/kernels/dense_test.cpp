#define BOOST_TEST_MODULE dense
#include <boost/test/unit_test.hpp>

#include "kernels/family.hpp"

using namespace rackcast::kernels;

namespace {

Work work(const char* math, int batch = 1) {
  return find_family("dense")->work(Shape().set("m", 16).set("n", 1792).set("k", 5120).set("batch", batch).set("math", math));
}

}  // namespace

BOOST_AUTO_TEST_CASE(work_matches_hand_numbers) {
  BOOST_TEST(work("bf16").flop == 2.0 * 16 * 1792 * 5120);
  BOOST_TEST(work("bf16").bytes_hbm == 2.0 * (1792 * 5120 + 16 * 5120 + 16 * 1792));
  BOOST_TEST(work("fp8").bytes_hbm == 1792 * 5120 + 16 * 5120 + 2.0 * 16 * 1792);
  // 14 x 40 weight scales and 16 x 40 activation scales of four bytes
  BOOST_TEST(work("fp8_block").bytes_hbm == work("fp8").bytes_hbm + 4.0 * (14 * 40 + 16 * 40));
  BOOST_TEST(work("nvfp4").bytes_hbm == (1792.0 + 16) * 5120 * 9 / 16 + 2.0 * 16 * 1792);
  BOOST_TEST(work("bf16", 8).flop == 8 * work("bf16").flop);
}
