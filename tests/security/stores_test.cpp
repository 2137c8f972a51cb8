// Stores that someone else made: nothing in them runs, nothing beside them leads elsewhere.
#define BOOST_TEST_MODULE security_stores
#include <boost/test/unit_test.hpp>
#include <sqlite3.h>

#include "tests/support/program.hpp"

using namespace support;
namespace fs = std::filesystem;

namespace {

void sql(const std::string& path, const std::string& text) {
  sqlite3* database = nullptr;
  BOOST_REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
  char* message = nullptr;
  const int code = sqlite3_exec(database, text.c_str(), nullptr, nullptr, &message);
  BOOST_REQUIRE_MESSAGE(code == SQLITE_OK, (message == nullptr ? "" : message));
  sqlite3_close(database);
}

// A sweep of two scenarios and its store.
struct Honest : TemporaryFolder {
  const std::string sweep = file("s.yaml", "name: s\nbase: standard\nset: [workload.kind=closed_loop, workload.input=1K, workload.output=16, workload.requests=20]\n"
                                           "axes: [{key: workload.concurrency, values: [4, 8]}]\n");
  const std::string store = path + "/r.sqlite";
  Honest() { BOOST_REQUIRE(shell(sweep_command()).code == 0); }
  std::string sweep_command() const { return "timeout 60 \"$RACKCAST\" sweep " + sweep + " --out " + store; }
  std::string report_command() const { return "timeout 60 \"$RACKCAST\" report " + store + " --out " + path + "/page.html"; }
  std::string export_command() const { return "timeout 60 \"$RACKCAST\" export " + store + ":1 --format vllm"; }
};

void refused(const Honest& honest, const std::string& why) {
  for (const std::string& command : {honest.report_command(), honest.export_command(), honest.sweep_command()}) {
    const Outcome outcome = shell(command);
    BOOST_TEST(outcome.code == 2, command + ": " + outcome.err);
    BOOST_TEST(outcome.err.find(why) != std::string::npos, command + ": " + outcome.err);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_trigger_does_not_run) {
  const Honest honest;
  sql(honest.store, "UPDATE results SET status = 'error' WHERE id = 2; CREATE TRIGGER t AFTER UPDATE ON results BEGIN DELETE FROM results; END");
  refused(honest, "or triggers; it is not opened");
  BOOST_TEST(shell("test -e " + honest.path + "/page.html").code == 1);
}

BOOST_AUTO_TEST_CASE(a_view_without_end_in_place_of_the_results_is_not_read) {
  const Honest honest;
  sql(honest.store, "ALTER TABLE results RENAME TO kept; CREATE VIEW results AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, key, position, name, status, error, "
                    "scenario, parameters, deployment, metrics, manifest, breakdown, seconds, peak_bytes FROM n, kept");
  refused(honest, "has another table of results than this program makes");
}

BOOST_AUTO_TEST_CASE(a_table_with_columns_that_compute_is_not_read) {
  const Honest honest;
  sql(honest.store, "ALTER TABLE results ADD COLUMN more TEXT GENERATED ALWAYS AS (hex(zeroblob(1000000))) VIRTUAL");
  refused(honest, "has another table of results than this program makes");
}

BOOST_AUTO_TEST_CASE(values_of_other_types_and_huge_ones_end_with_2_or_are_shown_as_what_they_are) {
  for (const char* change : {"metrics = x'00ff00ff'", "metrics = zeroblob(200000000)", "metrics = hex(zeroblob(40000000))", "name = x'3c000000'", "deployment = 17.5", "parameters = '[[[[[[[['",
                             "metrics = printf('%.*c', 100000, '[')", "metrics = '{\"total_tok_s_gpu\": \"<script>\"}'", "seconds = 'long'", "position = 'first'", "error = x'80'",
                             "scenario = x'00'", "scenario = 'a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]'", "key = zeroblob(3)", "breakdown = 'no json'", "peak_bytes = -1"}) {
    const Honest honest;
    sql(honest.store, std::string("UPDATE results SET ") + change + " WHERE id = 1");
    for (const std::string& command : {honest.report_command(), honest.export_command(), honest.sweep_command()}) {
      const Outcome outcome = shell(command);
      BOOST_TEST((outcome.code == 0 || outcome.code == 2), command + " with " + change + ": " + std::to_string(outcome.code) + " " + outcome.err);
    }
  }
}

BOOST_AUTO_TEST_CASE(links_beside_a_store_lead_nowhere) {
  for (const char* suffix : {"-wal", "-shm", "-journal", "-lock"}) {
    const Honest honest;
    const std::string precious = honest.file("precious", std::string(5000, 'k')), missing = honest.path + "/missing";
    for (const std::string& target : {precious, missing}) {
      fs::remove(honest.store + suffix);
      fs::create_symlink(target, honest.store + suffix);
      BOOST_TEST(shell(honest.sweep_command()).code == 2, suffix);
      const Outcome report = shell(honest.report_command());  // reads what it can read without the link, or refuses
      BOOST_TEST((report.code == 0 || report.code == 2), suffix + report.err);
      BOOST_TEST((content_of(precious) == std::string(5000, 'k')), suffix);
      BOOST_TEST(!fs::exists(missing), suffix);
    }
  }
}
