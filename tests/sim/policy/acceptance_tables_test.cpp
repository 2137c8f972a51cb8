#define BOOST_TEST_MODULE acceptance_tables
#include "sim/policy/acceptance_tables.hpp"

#include <boost/test/unit_test.hpp>

#include "sim/policy/adaptive_verification.hpp"
#include "sim/policy/speculation.hpp"

using namespace rackcast;
namespace tt = boost::test_tools;

BOOST_AUTO_TEST_CASE(every_published_length_comes_back_as_the_mean_of_its_rates) {
  for (const AcceptanceTable& table : acceptance_tables())
    for (std::size_t k = 1; k <= table.lengths.size(); ++k) {
      const std::vector<double> rates = acceptance_of(table, static_cast<int>(k));
      if (table.lengths[k - 1] <= 0) {
        BOOST_TEST(rates.empty());
        continue;
      }
      BOOST_REQUIRE(rates.size() == k);
      for (const double rate : rates) BOOST_TEST((rate >= 0 && rate <= 1));
      BOOST_TEST_CONTEXT(table.name << " " << k)
      BOOST_TEST(Acceptance(static_cast<int>(k), 1, rates).mean() == table.lengths[k - 1], tt::tolerance(1e-6));
    }
}

BOOST_AUTO_TEST_CASE(a_number_of_drafts_that_nobody_published_gives_nothing) {
  BOOST_TEST(acceptance_of(acceptance_tables()[0], 3).empty());
  BOOST_TEST(acceptance_of(acceptance_tables()[0], 9).empty());
  BOOST_TEST(acceptance_of(acceptance_tables()[0], 0).empty());
}

BOOST_AUTO_TEST_CASE(the_length_that_keeps_most_a_second_is_verified) {
  const std::vector<double> kept{1, 1.8, 2.4, 2.8};
  BOOST_TEST(best_verify_length(kept, std::vector<double>{10, 10, 10, 10}) == 3);   // free
  BOOST_TEST(best_verify_length(kept, std::vector<double>{10, 20, 30, 40}) == 0);   // as dear as tokens
  BOOST_TEST(best_verify_length(kept, std::vector<double>{10, 14, 18, 22}) == 2);
  BOOST_TEST(best_verify_length(std::vector<double>{1}, std::vector<double>{10}) == 0);
}
