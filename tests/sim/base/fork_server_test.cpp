#define BOOST_TEST_MODULE fork_server
#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "sim/base/error.hpp"
#include "sim/base/fork_server.hpp"
#include "sim/base/sanitizer.hpp"

using namespace rackcast;
using Kind = TaskOutcome::Kind;

namespace {

// What tasks of these tests do, by the first word of the request.
ForkServer::Task prepared(const Fields& request) {
  static std::map<std::string, int> loaded;  // the server's: counts how often each "trace" was loaded
  const std::string what = request.at(0);
  if (what == "bad request") throw UserError("key: rule");
  const int times = ++loaded[what];
  return [=]() -> Fields {
    if (what == "echo") return {request.at(1) + request.at(1), std::to_string(getpid())};
    if (what == "times") return {std::to_string(times)};
    if (what == "refuse") throw UserError("weights do not fit");
    if (what == "throw") throw std::runtime_error("broken");
    if (what == "crash") raise(SIGSEGV);
    if (what == "hang") for (;;) usleep(1000);
    if (what == "leave") _exit(3);
    if (what == "sleep") { usleep(static_cast<useconds_t>(std::stoi(request.at(1)))); return {request.at(1)}; }
    if (what == "eat") {
      std::vector<std::string> heap;
      for (;;) heap.emplace_back(std::size_t{1} << 20, 'x');
    }
    if (what == "parent") return {std::to_string(getppid())};
    if (what == "large") return {std::string(30 << 20, 'y')};
    return {};
  };
}

TaskOutcome one(const Fields& request, const TaskLimits& limits = {}) {
  ForkServer server(prepared);
  server.submit(7, request, limits);
  const auto outcome = server.wait(60);
  BOOST_REQUIRE(outcome.has_value());
  BOOST_TEST(outcome->id == 7);
  return *outcome;
}

bool alive(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string number, name, state;
  return static_cast<bool>(stat >> number >> name >> state) && state != "Z";
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_task_gives_its_fields_from_a_process_of_its_own) {
  const TaskOutcome outcome = one({"echo", std::string("a\0b", 3)});
  BOOST_TEST((outcome.kind == Kind::done));
  BOOST_TEST(outcome.fields.at(0) == std::string("a\0ba\0b", 6));
  BOOST_TEST(outcome.fields.at(1) != std::to_string(getpid()));
  BOOST_TEST(outcome.peak_bytes > 100'000u);
}

BOOST_AUTO_TEST_CASE(whatever_a_task_does_is_an_outcome) {
  BOOST_TEST((one({"refuse"}).kind == Kind::refused));
  BOOST_TEST(one({"refuse"}).error == "weights do not fit");
  BOOST_TEST((one({"bad request"}).kind == Kind::refused));
  BOOST_TEST((one({"throw"}).kind == Kind::failed));
  BOOST_TEST(one({"throw"}).error == "broken");
  BOOST_TEST((one({"crash"}).kind == Kind::crashed));
  BOOST_TEST(one({"crash"}).error == "died of signal 11 (Segmentation fault)");
  BOOST_TEST(one({"leave"}).error == "ended with status 3 and no result");
}

BOOST_AUTO_TEST_CASE(a_task_past_its_limits_is_ended) {
  const TaskOutcome late = one({"hang"}, {0.1, 0});
  BOOST_TEST((late.kind == Kind::out_of_time));
  BOOST_TEST(late.error == "ran longer than its limit of 0.1 s");
  BOOST_TEST(late.seconds >= 0.1);
#if !RACKCAST_ASAN
  const TaskOutcome fat = one({"eat"}, {60, 50 << 20});
  BOOST_TEST((fat.kind == Kind::out_of_memory));
  BOOST_TEST(fat.error == "needs more than its limit of 52428800 bytes of memory");
#endif
}

BOOST_AUTO_TEST_CASE(the_server_goes_on_after_a_crash_and_tasks_run_side_by_side) {
  ForkServer server(prepared);
  for (std::uint64_t i = 0; i < 40; ++i)
    server.submit(i, i % 4 == 1 ? Fields{"crash"} : Fields{"sleep", std::to_string(1000 * (40 - i))}, {});
  std::map<std::uint64_t, Kind> seen;
  while (server.running() > 0) {
    const auto outcome = server.wait(60);
    BOOST_REQUIRE(outcome.has_value());
    BOOST_TEST(seen.emplace(outcome->id, outcome->kind).second);
  }
  BOOST_TEST(seen.size() == 40u);
  for (const auto& [id, kind] : seen) BOOST_TEST((kind == (id % 4 == 1 ? Kind::crashed : Kind::done)));
}

BOOST_AUTO_TEST_CASE(waiting_no_time_still_sees_what_has_ended) {
  ForkServer server(prepared);
  server.submit(1, {"echo", "x"}, {});
  std::optional<TaskOutcome> outcome;
  for (int i = 0; i < 1000 && !outcome; ++i) {
    outcome = server.wait(0);
    usleep(10'000);
  }
  BOOST_TEST(outcome.has_value());
}

BOOST_AUTO_TEST_CASE(what_is_loaded_before_the_fork_is_loaded_once) {
  ForkServer server(prepared);
  for (int i = 1; i <= 3; ++i) {
    server.submit(1, {"times"}, {});
    BOOST_TEST(server.wait(60)->fields.at(0) == std::to_string(i));  // the server's own count goes on
  }
}

BOOST_AUTO_TEST_CASE(large_requests_and_answers_do_not_block_each_other) {
  ForkServer server(prepared);
  for (std::uint64_t i = 0; i < 6; ++i) server.submit(i, {"large", std::string(5 << 20, 'z')}, {});
  for (int i = 0; i < 6; ++i) BOOST_TEST(server.wait(60)->fields.at(0).size() == std::size_t{30} << 20);
}

BOOST_AUTO_TEST_CASE(tasks_die_with_their_server_and_the_server_with_its_owner) {
  int ends[2];
  BOOST_REQUIRE(pipe(ends) == 0);
  const pid_t owner = fork();
  if (owner == 0) {
    ForkServer server(prepared);
    server.submit(1, {"parent"}, {});
    const std::string seen = server.wait(60)->fields.at(0);
    server.submit(2, {"hang"}, {});
    usleep(100'000);
    std::string children;
    std::getline(std::ifstream("/proc/" + seen + "/task/" + seen + "/children"), children);
    const std::string line = seen + " " + children + "\n";
    if (write(ends[1], line.data(), line.size()) < 0) _exit(1);
    pause();
  }
  char line[100] = {};
  BOOST_REQUIRE(read(ends[0], line, sizeof line - 1) > 0);
  int server = 0, task = 0;
  BOOST_REQUIRE(sscanf(line, "%d %d", &server, &task) == 2);
  BOOST_TEST(alive(server));
  BOOST_TEST(alive(task));
  kill(owner, SIGKILL);
  for (int i = 0; i < 100 && (alive(server) || alive(task)); ++i) usleep(50'000);
  BOOST_TEST(!alive(server));
  BOOST_TEST(!alive(task));
}
