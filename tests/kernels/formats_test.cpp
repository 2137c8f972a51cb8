#define BOOST_TEST_MODULE formats
#include "kernels/formats.hpp"

#include <boost/test/unit_test.hpp>

using namespace rackcast::kernels;

BOOST_AUTO_TEST_CASE(e4m3_has_its_documented_corner_values) {
  BOOST_TEST(e4m3_value(0x00) == 0.0);
  BOOST_TEST(e4m3_value(0x01) == 0x1p-9);
  BOOST_TEST(e4m3_value(0x07) == 7 * 0x1p-9);
  BOOST_TEST(e4m3_value(0x08) == 0x1p-6);
  BOOST_TEST(e4m3_value(0x38) == 1.0);
  BOOST_TEST(e4m3_value(0x7e) == 448.0);
  BOOST_TEST(e4m3_value(0xfe) == -448.0);
  BOOST_TEST(std::isnan(e4m3_value(0x7f)));
}

BOOST_AUTO_TEST_CASE(every_e4m3_code_is_the_code_of_its_value) {
  for (int code = 0; code < 256; ++code)
    if ((code & 0x7f) != 0x7f) BOOST_TEST(int{e4m3_code(e4m3_value(static_cast<std::uint8_t>(code)))} == code);
}

BOOST_AUTO_TEST_CASE(rounding_to_e4m3_is_to_nearest_even_and_saturates) {
  BOOST_TEST(e4m3_value(e4m3_code(1.0625)) == 1.0);     // half a step above 1: even mantissa below
  BOOST_TEST(e4m3_value(e4m3_code(1.1875)) == 1.25);    // half a step above 1.125: even mantissa above
  BOOST_TEST(e4m3_value(e4m3_code(1.07)) == 1.125);
  BOOST_TEST(e4m3_value(e4m3_code(0x1.fp-7)) == 0x1p-6);  // rounds up across the border of the denormals
  BOOST_TEST(e4m3_value(e4m3_code(1e9)) == 448.0);
  BOOST_TEST(e4m3_value(e4m3_code(-1e9)) == -448.0);
  BOOST_TEST(e4m3_value(e4m3_code(0x1p-11)) == 0.0);
}

BOOST_AUTO_TEST_CASE(the_power_of_two_scale_is_the_smallest_that_avoids_saturation) {
  BOOST_TEST(e4m3_power_scale(448.0) == 1.0);
  BOOST_TEST(e4m3_power_scale(448.1) == 2.0);
  BOOST_TEST(e4m3_power_scale(3.5) == 0x1p-7);
}

BOOST_AUTO_TEST_CASE(e2m1_and_ue8m0_have_their_documented_values) {
  BOOST_TEST(e2m1_value(7) == 6.0);
  BOOST_TEST(e2m1_value(9) == -0.5);
  BOOST_TEST(ue8m0_value(127) == 1.0);
  BOOST_TEST(ue8m0_value(120) == 0x1p-7);
}
