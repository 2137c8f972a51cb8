#define BOOST_TEST_MODULE sweep_verb
#include <boost/test/unit_test.hpp>

#include <signal.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "analysis/store.hpp"
#include "tests/support/processes.hpp"

using namespace rackcast;
using namespace support;
namespace fs = std::filesystem;

namespace {

// 12 scenarios of a closed loop, some 50 ms each.
std::string sweep_text(const std::string& more = "", const std::string& requests = "20000") {
  return "name: loop\nbase: standard\nset: [workload.kind=closed_loop, workload.input=1K, workload.output=64, workload.requests=" + requests +
         ", network=fluid]\naxes:\n  - {key: deployment.prefill.engines, values: [2, 4, 8]}\n"
         "  - {key: workload.concurrency, values: [16, 32, 48, 64]}\n" + more;
}

struct Sweep {
  support::TemporaryFolder folder;
  std::string file, store = folder.path + "/r.sqlite";
  explicit Sweep(const std::string& text = sweep_text()) : file(folder.file("s.yaml", text)) {}
  std::string command(const std::string& more = "") const { return "\"$RACKCAST\" sweep " + file + " --out " + store + " " + more; }
  std::vector<StoredResult> rows() const { return Store(store, Store::Mode::read).all(); }
};

// "N were there, M done" of the summary line.
std::pair<int, int> there_and_done(const std::string& err) {
  int combinations = 0, cannot = 0, there = 0, done = 0;
  const std::size_t at = err.find("combinations");
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, err);
  const std::size_t start = err.rfind(": ", at);
  BOOST_REQUIRE_MESSAGE(sscanf(err.c_str() + start, ": %d combinations: %d cannot be, %d were there, %d done", &combinations, &cannot, &there, &done) == 4, err);
  return {there, done};
}

bool have_mpi() { return shell("command -v mpirun").code == 0 && shell("ldd \"$RACKCAST\" | grep -q libmpi").code == 0; }
// A leak checker would count what Open MPI's plugins leave behind.
const std::string mpirun = "ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n 3 --oversubscribe ";

// Nothing twice, nothing lost, and a second start runs exactly what was not finished.
void check_the_rest_runs(const Sweep& sweep, const std::string& command, std::size_t scenarios) {
  std::size_t finished = 0;
  std::set<std::string> keys;
  if (fs::exists(sweep.store)) {
    const Store store(sweep.store, Store::Mode::write);
    finished = store.finished_keys().size();
    for (const StoredResult& row : store.all()) BOOST_TEST(keys.insert(row.key).second);
  }
  const support::Outcome second = shell("timeout 200 " + command);
  BOOST_REQUIRE_MESSAGE(second.code == 0, second.err);
  const auto [there, done] = there_and_done(second.err);
  BOOST_TEST(there == static_cast<int>(finished));
  BOOST_TEST(done == static_cast<int>(scenarios - finished));
  const auto rows = sweep.rows();
  BOOST_TEST(rows.size() == scenarios);
  for (const StoredResult& row : rows) BOOST_TEST(row.status == "done");
}

}  // namespace

BOOST_AUTO_TEST_CASE(results_are_the_same_for_any_number_of_jobs_and_under_mpirun) {
  Sweep one, two, ranks;
  const support::Outcome a = shell(one.command("--jobs 1 --json")), b = shell(two.command("--jobs 2 --json"));
  BOOST_REQUIRE_MESSAGE(a.code == 0, a.err);
  BOOST_TEST(a.out == b.out);
  const auto json = nlohmann::json::parse(a.out);
  BOOST_REQUIRE(json["results"].size() == 12u);
  BOOST_TEST(json["results"][5]["deployment"]["prefill"]["engines"] == 4);
  BOOST_TEST(json["results"][5]["axes"]["workload.concurrency"] == 32);
  BOOST_TEST(json["results"][5]["metrics"]["output_tok_s_gpu"].get<double>() > 0);
  BOOST_TEST(shell(one.command("--json")).out == a.out);  // from the store
  if (!have_mpi()) {
    BOOST_TEST_MESSAGE("skipped: no mpirun here, or built without MPI");
    return;
  }
  const support::Outcome c = shell("timeout 100 env " + mpirun + ranks.command("--json"));
  BOOST_REQUIRE_MESSAGE(c.code == 0, c.err);
  BOOST_TEST(c.out == a.out);
}

BOOST_AUTO_TEST_CASE(a_sweep_that_is_killed_goes_on_where_it_stood) {
  std::mt19937 random(7);
  Sweep sweep(sweep_text("  - {key: seed, values: [1, 2, 3, 4]}\n"));
  for (int round = 0; round < 10; ++round) {
    const pid_t process = start("exec " + sweep.command());
    nap(0.02 + 0.25 * static_cast<double>(random() % 1000) / 1000);
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  nap(0.2);
  check_the_rest_runs(sweep, sweep.command(), 48);
}

BOOST_AUTO_TEST_CASE(a_worker_that_is_killed_is_a_row_with_its_error_and_runs_again_at_the_next_start) {
  std::mt19937 random(8);
  int killed = 0;
  for (int round = 0; round < 10; ++round) {
    Sweep sweep;
    const pid_t process = start("exec " + sweep.command("--jobs 2"));
    for (int i = 0; i < 100; ++i) {
      nap(0.01 + 0.002 * static_cast<double>(random() % 10));
      const std::vector<pid_t> workers = descendants(process, 2);
      if (workers.empty()) continue;
      kill(workers[0], SIGKILL);
      break;
    }
    int status = 0;
    waitpid(process, &status, 0);
    int errors = 0;
    for (const StoredResult& row : sweep.rows()) {
      if (row.status != "error") continue;
      ++errors;
      BOOST_TEST(row.error == "died of signal 9 (Killed)");
    }
    killed += errors;
    BOOST_TEST(WEXITSTATUS(status) == (errors > 0 ? 1 : 0));
    BOOST_TEST(sweep.rows().size() == 12u);
    check_the_rest_runs(sweep, sweep.command(), 12);
  }
  BOOST_TEST(killed >= 5);
}

BOOST_AUTO_TEST_CASE(an_mpi_rank_that_is_killed_ends_the_job_and_the_next_start_runs_the_rest) {
  if (!have_mpi()) {
    BOOST_TEST_MESSAGE("skipped: no mpirun here, or built without MPI");
    return;
  }
  std::mt19937 random(9);
  Sweep sweep(sweep_text("  - {key: seed, values: [1, 2, 3, 4]}\n"));
  int stuck = 0;
  for (int round = 0; round < 10; ++round) {
    const pid_t process = start("export ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; exec mpirun -n 3 --oversubscribe " + sweep.command());
    std::vector<pid_t> ranks;
    for (int i = 0; i < 300 && (ranks = children_of(process)).size() < 3; ++i) nap(0.01);
    nap(0.3 + 0.2 * static_cast<double>(random() % 1000) / 1000);
    if (!ranks.empty()) kill(ranks[random() % ranks.size()], SIGKILL);
    // Open MPI's launcher at times waits for ever for ranks that have all ended; a user would stop it, too.
    if (!support::ended_within(process, 30)) ++stuck;
  }
  BOOST_TEST_MESSAGE("mpirun had to be killed " << stuck << " times of 10");
  BOOST_TEST(stuck < 5);
  nap(0.2);
  check_the_rest_runs(sweep, sweep.command(), 48);
}

BOOST_AUTO_TEST_CASE(a_scenario_past_its_limit_is_a_row_and_the_sweep_goes_on) {
  Sweep sweep("name: l\nbase: standard\nset: [workload.kind=closed_loop, workload.input=1K, workload.output=64, network=fluid]\n"
              "axes: [{key: workload.requests, values: [10, 100000000]}]\nlimits: {time: 3 s}\n");
  const support::Outcome outcome = shell(sweep.command("--json"));
  BOOST_TEST(outcome.code == 1);
  const auto results = nlohmann::json::parse(outcome.out)["results"];
  BOOST_TEST(results[0]["status"] == "done");
  BOOST_TEST(results[1]["status"] == "error");
  BOOST_TEST(results[1]["error"] == "ran longer than its limit of 3 s");
}

BOOST_AUTO_TEST_CASE(what_cannot_be_is_counted_with_its_reason_and_what_does_not_fit_is_refused) {
  Sweep sweep(sweep_text("conditions: ['prefill.engines * prefill.dep <= 16']\n", "50"));
  const support::Outcome outcome = shell(sweep.command());
  BOOST_TEST(outcome.code == 0);
  BOOST_TEST(outcome.err.find("12 combinations: 4 cannot be, 0 were there, 8 done") != std::string::npos, outcome.err);
  BOOST_TEST(outcome.err.find("4 x condition: prefill.engines * prefill.dep <= 16") != std::string::npos, outcome.err);
  Sweep tight("name: t\nbase: standard\nset: [workload.kind=closed_loop, workload.input=1K, workload.output=8, workload.requests=50, network=fluid]\n"
              "axes: [{key: rack.gpu.memory, values: [20 GB, 270 GB]}]\n");
  const support::Outcome refused = shell(tight.command("--json"));
  BOOST_TEST(refused.code == 0);
  const auto results = nlohmann::json::parse(refused.out)["results"];
  BOOST_TEST(results[0]["status"] == "refused");
  BOOST_TEST(results[1]["status"] == "done");
}

BOOST_AUTO_TEST_CASE(two_sweeps_on_one_store_take_turns) {
  Sweep sweep;
  const pid_t first = start("exec " + sweep.command());
  nap(0.15);
  const support::Outcome second = shell("timeout 100 " + sweep.command());
  waitpid(first, nullptr, 0);
  BOOST_REQUIRE_MESSAGE(second.code == 0, second.err);
  BOOST_TEST(sweep.rows().size() == 12u);
}

BOOST_AUTO_TEST_CASE(a_disk_that_fills_up_ends_the_sweep_with_what_to_do_and_the_next_start_runs_the_rest) {
  Sweep sweep;
  // 100 KiB a file stand for the disk; an ignored SIGXFSZ makes the write fail as a full disk does.
  const support::Outcome full = shell("trap '' XFSZ; ulimit -f 100; " + sweep.command());
  BOOST_TEST(full.code == 2);
  BOOST_TEST(full.err.find("every finished result before this one is kept") != std::string::npos, full.err);
  check_the_rest_runs(sweep, sweep.command(), 12);
}

BOOST_AUTO_TEST_CASE(a_store_of_another_version_is_refused_and_left_alone) {
  Sweep sweep;
  const support::Outcome first = shell(sweep.command());
  BOOST_REQUIRE_MESSAGE(first.code == 0, first.err);
  { std::fstream file(sweep.store, std::ios::in | std::ios::out | std::ios::binary); file.seekp(60); file.write("\0\0\0\x63", 4); }  // SQLite's user version
  const support::Outcome other = shell(sweep.command());
  BOOST_TEST(other.code == 2);
  BOOST_TEST(other.err.find("has version 99 and this program writes version 1") != std::string::npos, other.err);
  { std::fstream file(sweep.store, std::ios::in | std::ios::out | std::ios::binary); file.seekp(60); file.write("\0\0\0\x01", 4); }
  BOOST_TEST(sweep.rows().size() == 12u);
}

BOOST_AUTO_TEST_CASE(bad_stores_and_files_are_told_with_exit_code_2) {
  Sweep sweep;
  std::ofstream(sweep.store) << std::string(5000, 'x');
  const support::Outcome outcome = shell(sweep.command());
  BOOST_TEST(outcome.code == 2);
  BOOST_TEST(outcome.err.find("is no result store") != std::string::npos, outcome.err);
  Sweep good;
  BOOST_REQUIRE(shell(good.command()).code == 0);
  const std::string before = support::content_of(good.store);
  BOOST_TEST(shell("\"$RACKCAST\" report '" + good.store + "' --out '" + good.store + "'").code == 2);
  BOOST_TEST((support::content_of(good.store) == before));
  BOOST_TEST(shell("\"$RACKCAST\" report '" + good.store + "' --out '" + good.store + ".html' --validation /dev/zero").code == 2);
  BOOST_TEST(shell("\"$RACKCAST\" sweep scenarios/sweep-small.yaml --out ''").code == 2);
  BOOST_TEST(shell("\"$RACKCAST\" sweep scenarios/sweep-small.yaml --jobs -1 --out '" + good.store + ".other'").code == 2);
  Sweep bad("name: b\nbase: standard\naxes: [{key: deployment.prefil, values: [1]}]\n");
  BOOST_TEST(shell(bad.command()).code == 2);
}
