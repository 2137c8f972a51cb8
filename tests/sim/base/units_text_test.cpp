#define BOOST_TEST_MODULE units_text
#include <boost/test/unit_test.hpp>
#include <random>

#include "sim/base/units_text.hpp"

using namespace rackcast;

namespace {
constexpr Dimension time_{1}, bytes{0, 1}, rate{-1, 1}, flop_rate{-1, 0, 1}, dollars{0, 0, 0, 1}, dollar_rate{-1, 0, 0, 1},
    power{-1, 0, 0, 0, 1}, per_second{-1};

void reads(const char* text, const Dimension& dimension, double expected) {
  const Parsed<double> parsed = parse_quantity(text, dimension);
  BOOST_TEST(parsed.error == "", text);
  BOOST_TEST(parsed.value == expected, text << " gave " << parsed.value);
}
}  // namespace

BOOST_AUTO_TEST_CASE(units_mean_what_they_say) {
  reads("5 ms", time_, 5e-3);
  reads("30 min", time_, 1800);
  reads("1.5 h", time_, 5400);
  reads("250ns", time_, 250 * 1e-9);
  reads("64 GiB", bytes, 68719476736.0);
  reads("284208 MiB", bytes, 298013687808.0);
  reads("1 TB", bytes, 1e12);
  reads("890 B", bytes, 890);
  reads("900 GB/s", rate, 9e11);
  reads("400 Gbit/s", rate, 5e10);
  reads("2.5 PFLOPS", flop_rate, 2.5e15);
  reads("2500 Tflop/s", flop_rate, 2.5e15);
  reads("0.15 USD/Mtok", dollars, 0.15 / 1e6);
  reads("2.31 USD/h", dollar_rate, 2.31 / 3600);
  reads("2.12 kW", power, 2120);
  reads("20 /s", per_second, 20);
  reads("1e-6 s", time_, 1e-6);
  reads("0", time_, 0);
}

BOOST_AUTO_TEST_CASE(what_is_not_a_unit_says_so) {
  const auto error = [](const char* text, const Dimension& d) { return parse_quantity(text, d).error; };
  BOOST_TEST(error("5", time_) == "needs a unit, as in '5 ms'");
  BOOST_TEST(error("5 gib", bytes) == "has unknown unit 'gib': did you mean 'GiB'?");
  BOOST_TEST(error("5 GB", time_) == "has unit 'GB' where one of s, ms, us, ns, min, h is needed");
  BOOST_TEST(error("900 GB", rate).rfind("has unit 'GB' where one of", 0) == 0U);
  BOOST_TEST(error("ms", time_) == "is not a quantity such as '5 ms'");
  BOOST_TEST(error("1e999 s", time_) == "is out of range");
  BOOST_TEST(error("1e308 h", time_) == "is out of range");
  BOOST_TEST(error("nan s", time_) == "is not a quantity such as '5 ms'");
  BOOST_TEST(!error("5 /", per_second).empty());
  BOOST_TEST(!error("1 2 s", time_).empty());
  BOOST_TEST(!error("--1 s", time_).empty());
}

BOOST_AUTO_TEST_CASE(written_quantities_read_back_to_the_same_bits) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-12, 16);
  for (const Dimension& dimension : {time_, bytes, rate, flop_rate, dollars, dollar_rate, power, per_second})
    for (int i = 0; i < 3000; ++i) {
      const double value = std::pow(10.0, exponent(random)) * (i % 2 == 0 ? 1 : -1);
      const std::string text = format_quantity(value, dimension);
      const Parsed<double> back = parse_quantity(text, dimension);
      BOOST_REQUIRE_MESSAGE(back && back.value == value, text << " for " << value << ' ' << back.error);
    }
}

BOOST_AUTO_TEST_CASE(the_writer_picks_a_readable_unit) {
  BOOST_TEST(format_quantity(0.15 / 1e6, dollars) == "0.15 USD/Mtok");
  BOOST_TEST(format_quantity(2.31 / 3600, dollar_rate) == "2.31 USD/h");
  BOOST_TEST(format_quantity(5e-3, time_) == "5 ms");
  BOOST_TEST(format_quantity(1800, time_) == "30 min");
  BOOST_TEST(format_quantity(840 * 0x1p30, bytes) == "840 GiB");
  BOOST_TEST(format_quantity(9e11, rate) == "900 GB/s");
  BOOST_TEST(format_quantity(2.5e15, flop_rate) == "2.5 PFLOPS");
  BOOST_TEST(format_quantity(0, time_) == "0");
}

BOOST_AUTO_TEST_CASE(token_counts_take_suffixes) {
  BOOST_TEST(parse_tokens("16K").value.count == 16384);
  BOOST_TEST(parse_tokens("1M").value.count == 1048576);
  BOOST_TEST(parse_tokens("8192").value.count == 8192);
  BOOST_TEST(format_tokens(Tokens{16384}) == "16K");
  BOOST_TEST(format_tokens(Tokens{1000}) == "1000");
  for (const char* bad : {"", "K", "1.5K", "16k", "1G", "99999999999999M", "16 KB"}) BOOST_TEST(!parse_tokens(bad).error.empty(), bad);
}
