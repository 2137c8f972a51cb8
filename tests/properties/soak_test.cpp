// scenarios/soak.yaml: memory is flat, nothing is lost, whatever fails. RACKCAST_SOAK_HOURS=24 for its whole day; otherwise
// a quarter of an hour of it with fewer lanes and the day's failures.
#define BOOST_TEST_MODULE properties_soak
#include <boost/test/unit_test.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/processes.hpp"

using namespace support;

namespace {

double resident_mib(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

bool running(pid_t process, int& status) { return waitpid(process, &status, WNOHANG) == 0; }

}  // namespace

BOOST_AUTO_TEST_CASE(memory_is_flat_over_a_day_of_failures_and_rearrangements) {
  const char* const hours = std::getenv("RACKCAST_SOAK_HOURS");
  std::string sets = " --set 'workload.duration=" + std::string(hours == nullptr ? "0.25" : hours) + " h'";
  if (hours == nullptr) {
    sets += " --set workload.concurrency=384 --set network=fluid";
    const int seconds[] = {180, 120, 240, 90, 150};
    for (int i = 0; i < 5; ++i) sets += " --set 'failures.events[" + std::to_string(i) + "].every=" + std::to_string(seconds[i]) + " s'";
  }
  const TemporaryFolder folder;
  const std::string out = folder.path + "/result.json";
  const auto begin = std::chrono::steady_clock::now();
  const pid_t process = start("exec \"$RACKCAST\" run scenarios/soak.yaml --json" + sets + " > " + out);
  std::vector<double> seen;
  int status = 0;
  for (; running(process, status); nap(0.02)) seen.push_back(resident_mib(process));
  BOOST_REQUIRE(status == 0);
  const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const nlohmann::json result = nlohmann::json::parse(content_of(out));
  const nlohmann::json& failures = result["breakdown"]["failures"];
  const std::size_t quarter = seen.size() / 4;
  BOOST_REQUIRE(quarter > 2u);
  const auto most = [&](std::size_t part) { return *std::max_element(seen.begin() + static_cast<long>(part * quarter), seen.begin() + static_cast<long>((part + 1) * quarter)); };
  std::printf("%.0f simulated s in %.1f s; memory by quarters of the run: %.0f, %.0f, %.0f, %.0f MiB; %zu failures; requests: %s\n",
              result["metrics"]["sim_seconds"].get<double>(), wall_s, most(0), most(1), most(2), most(3), failures["events"].size(), failures["requests"].dump().c_str());
  BOOST_TEST(failures["events"].size() > 10u);
  BOOST_TEST(failures["requests"]["lost"] == 0);
  BOOST_TEST(failures["requests"]["retried_and_completed"] > 0);
  // The router's table of where sessions are at home grows for a day, by doubling, to its bound of 262,144 entries.
  const double router_mib = hours == nullptr ? 4 : 24;
  BOOST_TEST(most(3) < 1.03 * most(1) + router_mib);
}
