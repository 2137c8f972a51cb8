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

BOOST_AUTO_TEST_CASE(ranks_never_share_a_core_and_every_round_pairs_others) {
  std::vector<int> cores;
  for (int i = 0; i < 32; ++i) cores.push_back(2 * i);
  std::set<int> first;
  std::set<int> distances;
  for (int round = 0; round < 4; ++round) {
    const int a = core_of(cores, 0, 2, round), b = core_of(cores, 1, 2, round);
    BOOST_TEST(a != b);
    first.insert(a);
    distances.insert(a - b);
  }
  BOOST_TEST(first.size() == 4u);
  BOOST_TEST(distances.size() == 4u);
  BOOST_TEST(core_of({}, 0, 1, 0) == -1);
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
