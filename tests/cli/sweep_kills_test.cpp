// Many tiny scenarios, a sweep that is killed again and again with all or some of its processes, and the store at its end.
// RACKCAST_SWEEP_SCENARIOS=5000 for a long look.
#define BOOST_TEST_MODULE sweep_kills
#include <boost/test/unit_test.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "analysis/store.hpp"
#include "tests/support/processes.hpp"

using namespace rackcast;
using namespace support;

namespace {

std::string sweep_text(int scenarios) {
  std::string seeds;
  for (int i = 0; i < scenarios / 8; ++i) seeds += (i > 0 ? ", " : "") + std::to_string(i + 1);
  return "name: kills\nbase: standard\nset: [workload.kind=closed_loop, workload.input=1K, workload.output=16, workload.requests=40, network=fluid]\n"
         "axes:\n  - {key: deployment.prefill.engines, values: [2, 4]}\n  - {key: workload.concurrency, values: [4, 8, 16, 32]}\n"
         "  - {key: seed, values: [" + seeds + "]}\n";
}

// What must be the same however often the sweep was stopped: all but times and memory of the run itself, and the order of arrival.
std::map<std::string, std::string> content(const std::string& path) {
  std::map<std::string, std::string> rows;
  if (!std::filesystem::exists(path)) return rows;
  for (const StoredResult& r : Store(path, Store::Mode::write).all()) {
    if (r.status == "error") continue;  // a killed worker's; it runs again
    nlohmann::json manifest = nlohmann::json::parse(r.manifest);
    manifest.erase("timing");
    const bool once = rows.emplace(r.key, std::to_string(r.position) + r.name + r.status + r.scenario + r.parameters + r.deployment + r.metrics + manifest.dump() + r.breakdown).second;
    BOOST_TEST(once, r.key + " is there twice");
  }
  return rows;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_finished_result_stays_and_the_store_ends_like_one_of_a_sweep_that_ran_through) {
  const char* const wanted = std::getenv("RACKCAST_SWEEP_SCENARIOS");
  const int scenarios = wanted == nullptr ? 240 : std::atoi(wanted);
  const TemporaryFolder folder;
  const std::string file = folder.file("s.yaml", sweep_text(scenarios)), whole = folder.path + "/whole.sqlite", killed = folder.path + "/killed.sqlite";
  const auto command = [&](const std::string& store) { return "\"$RACKCAST\" sweep " + file + " --jobs 2 --out " + store; };
  BOOST_REQUIRE(shell(command(whole)).code == 0);
  std::mt19937 random(11);
  std::map<std::string, std::string> before;
  int starts = 0, with_progress = 0;
  const int killed_starts = 10 + scenarios / 100;
  for (bool finished = false; !finished && starts <= killed_starts; ++starts) {
    const pid_t process = start("exec " + command(killed));
    if (starts < killed_starts) {
      nap(0.1 + (0.4 + scenarios / 1000.0) * static_cast<double>(random() % 1000) / 1000);
      const std::vector<pid_t> workers = descendants(process, 2);
      if (const auto what = random() % 3; what == 0 && !workers.empty()) {
        kill(workers[random() % workers.size()], SIGKILL);
        nap(0.1);
        kill(process, SIGKILL);  // the sweep; its other workers end by themselves
      } else {
        kill(what == 1 ? process : -process, SIGKILL);
      }
    }
    int status = 0;
    waitpid(process, &status, 0);
    finished = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    std::map<std::string, std::string> after = content(killed);
    for (const auto& [key, row] : before) BOOST_REQUIRE_MESSAGE(after.contains(key) && after[key] == row, key + " was lost or changed");
    with_progress += after.size() > before.size() && !finished;
    before = std::move(after);
  }
  std::printf("%d scenarios, %d starts, %d of them killed after they had stored results\n", scenarios, starts, with_progress);
  BOOST_TEST(with_progress > 0);
  BOOST_TEST(before.size() == static_cast<std::size_t>(scenarios));
  BOOST_TEST((before == content(whole)));
}
