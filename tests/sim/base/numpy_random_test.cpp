#define BOOST_TEST_MODULE numpy_random
#include <boost/test/unit_test.hpp>
#include <array>
#include <cmath>

#include "sim/base/numpy_random.hpp"

using rackcast::NumpyRandom;

// numpy 1.24: default_rng(s).bit_generator.random_raw() and default_rng(s).uniform(0.25, 0.75)
struct Golden { std::uint64_t seed, raw; double uniform; };
constexpr std::array goldens = {
    Golden{0U, 11749869230777074271U, 0x1.230febcfd9c28p-1},
    Golden{1U, 9441442522235856127U, 0x1.0306bdf37922ep-1},
    Golden{2U, 4825892087074085057U, 0x1.85f20691acd6bp-2},
    Golden{42U, 14276969152011380360U, 0x1.4621fbcd16d92p-1},
    Golden{4294967295U, 4647538520743280031U, 0x1.80febf5261b1fp-2},
    Golden{4294967296U, 16412783775159424549U, 0x1.63c5ebe285ac1p-1},
    Golden{16045690984503111693U, 1425410330140001177U, 0x1.2790264946558p-2},
    Golden{18446744073709551615U, 12544278110101001871U, 0x1.2e163a7a8c475p-1},
    Golden{4720721261117928063U, 4705859003478223230U, 0x1.829d23a972c95p-2},
    Golden{8766480278738261043U, 152481524821286906U, 0x1.043b72472390bp-2},
    Golden{1329637740802083942U, 6912882642532299032U, 0x1.bfdefc465433ep-2},
    Golden{8749746783503398889U, 6014547393345569316U, 0x1.a6efedf9c23a8p-2},
    Golden{2876137494685333844U, 11815534121126525508U, 0x1.23f935ae89410p-1},
    Golden{3904497331914684452U, 13507765777820219587U, 0x1.3b75396860270p-1},
    Golden{7634208958675629714U, 11615761805261702788U, 0x1.213379d1a62c8p-1},
    Golden{3774195871892446565U, 6410035623012194927U, 0x1.b1ea0adfe67bbp-2},
    Golden{5069107050515594517U, 13703773672783774510U, 0x1.3e2d958cb8a08p-1},
    Golden{254187954446631217U, 17693006355175900986U, 0x1.758a2f89d8fd0p-1},
    Golden{6949931735954725146U, 266158360625374731U, 0x1.07632b3cd626cp-2},
    Golden{4963495986967072338U, 1511621722303994664U, 0x1.29f4b7e521633p-2},
};

BOOST_AUTO_TEST_CASE(the_first_draw_of_every_seed_is_numpys) {
  for (const Golden& golden : goldens) {
    BOOST_TEST(NumpyRandom(golden.seed).next() == golden.raw);
    BOOST_TEST(NumpyRandom(golden.seed).uniform(0.25, 0.75) == golden.uniform);
  }
}

BOOST_AUTO_TEST_CASE(the_thousandth_draw_of_seed_42_is_numpys) {
  NumpyRandom random(42);
  for (int i = 1; i < 1000; ++i) random.next();
  BOOST_TEST(random.next() == 5181623743110711096U);
}

BOOST_AUTO_TEST_CASE(below_stays_below_and_reaches_both_ends) {
  NumpyRandom random(7);
  std::array<int, 3> seen{};
  for (int i = 0; i < 3000; ++i) ++seen.at(random.below(3));
  for (const int count : seen) BOOST_TEST(std::abs(count - 1000) < 150);  // 5.8 sigma
}

BOOST_AUTO_TEST_CASE(the_normal_quantile_inverts_the_distribution_function) {
  for (const double p : {1e-9, 1e-3, 0.02425, 0.3, 0.5, 0.9, 0.99999})
    BOOST_TEST(0.5 * std::erfc(-rackcast::normal_quantile(p) / std::sqrt(2.0)) == p, boost::test_tools::tolerance(1e-7));
}
