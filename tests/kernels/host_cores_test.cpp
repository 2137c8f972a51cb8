#define BOOST_TEST_MODULE host_cores
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "kernels/host_cores.hpp"

using namespace rackcast::kernels;

BOOST_AUTO_TEST_CASE(hardware_threads_of_one_core_count_once) {
  const auto folder = std::filesystem::temp_directory_path() / "rackcast_host_cores_test";
  const std::vector<int> here = physical_cores(folder.string());  // nothing there yet: every hardware thread is a core
  for (const int cpu : here) {
    const auto place = folder / ("devices/system/cpu/cpu" + std::to_string(cpu) + "/topology");
    std::filesystem::create_directories(place);
    std::ofstream(place / "thread_siblings_list") << "0-999\n";
  }
  BOOST_TEST(physical_cores(folder.string()).size() == 1u);
  std::filesystem::remove_all(folder);
}

BOOST_AUTO_TEST_CASE(ranks_share_no_core_while_there_are_enough_and_leave_none_out) {
  const std::vector<int> cores = {0, 2, 4, 6, 8, 10, 12};
  std::set<int> seen;
  for (int rank = 0; rank < 3; ++rank)
    for (const int core : cores_of(cores, rank, 3)) BOOST_TEST(seen.insert(core).second);
  BOOST_TEST(seen.size() == cores.size());
  BOOST_TEST(cores_of({5, 6}, 3, 4) == std::vector<int>{6}, boost::test_tools::per_element());
  BOOST_TEST(cores_of({}, 0, 1).empty());
}

BOOST_AUTO_TEST_CASE(quiet_cores_are_the_same_cores_in_another_order) {
  const std::vector<int> cores = physical_cores("/none");
  const std::vector<int> order = quiet_first(cores);
  BOOST_TEST(std::set<int>(order.begin(), order.end()) == std::set<int>(cores.begin(), cores.end()), boost::test_tools::per_element());
  BOOST_TEST(physical_cores("/none") == cores, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_thread_is_where_it_was_pinned_and_free_again_afterwards) {
  const std::vector<int> before = physical_cores("/none");
  {
    const PinnedThread pinned(before.back());
    const std::vector<int> now = physical_cores("/none");
    BOOST_TEST(now.size() == 1u);
    BOOST_TEST(now.front() == before.back());
  }
  BOOST_TEST(physical_cores("/none") == before, boost::test_tools::per_element());
}
