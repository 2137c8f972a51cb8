// Launching and bootstrap with real processes and a fake transport: 2 and 4 ranks, by hand and under mpirun.
#define BOOST_TEST_MODULE launching
#include <boost/test/unit_test.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "calib/measurement.hpp"

using namespace rackcast::calib;
namespace fs = std::filesystem;

namespace {

const std::string program = RACKCAST_FAKE_TRANSPORT_CALIB;

struct Folder {
  fs::path path = fs::temp_directory_path() / ("launching_test_" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
};

struct Ended {
  std::vector<int> codes;
  double seconds = 0;
  std::string errors;
};

// One shell line a rank, all at once; standard errors together.
Ended run_ranks(const Folder& folder, int ranks, const std::string& arguments, const std::string& launcher = "RACKCAST") {
  std::vector<pid_t> children;
  const auto start = std::chrono::steady_clock::now();
  for (int r = 0; r < ranks; ++r) {
    const pid_t child = fork();
    if (child == 0) {
      const std::string rank = std::to_string(r);
      const std::string all = std::to_string(ranks);
      if (launcher == "RACKCAST") {
        setenv("RACKCAST_RANK", rank.c_str(), 1);
        setenv("RACKCAST_RANKS", all.c_str(), 1);
      } else if (launcher == "SLURM") {
        setenv("SLURM_PROCID", rank.c_str(), 1);
        setenv("SLURM_STEP_NUM_TASKS", all.c_str(), 1);
      } else {
        setenv("RANK", rank.c_str(), 1);
        setenv("WORLD_SIZE", all.c_str(), 1);
      }
      const std::string line = program + " " + folder.file("out.jsonl") + " " + arguments + " 2>" + folder.file("err." + rank);
      execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    children.push_back(child);
  }
  Ended ended;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    ended.codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  ended.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (int r = 0; r < ranks; ++r) {
    std::ifstream in(folder.file("err." + std::to_string(r)));
    ended.errors.append(std::istreambuf_iterator<char>(in), {});
  }
  return ended;
}

std::size_t finished_points(const Folder& folder) { return read_measurements(folder.file("out.jsonl")).points.size(); }

bool have_mpirun() { return std::system("command -v mpirun >/dev/null 2>&1") == 0; }

}  // namespace

BOOST_AUTO_TEST_CASE(two_and_four_processes_climb_the_ladder_and_rank_0_writes_one_file) {
  for (const int ranks : {2, 4}) {
    Folder folder;
    const Ended ended = run_ranks(folder, ranks, "--points 3");
    for (const int code : ended.codes) BOOST_TEST(code == 0);
    BOOST_TEST_INFO(ended.errors);
    const MeasurementFile file = read_measurements(folder.file("out.jsonl"));
    BOOST_TEST(file.points.size() == static_cast<std::size_t>(ranks == 2 ? 6 : 9));
    for (const Measurement& row : file.points) {
      BOOST_TEST(row.transport == "fake");
      BOOST_TEST(!measures_nvlink(row));
      // Four samples, the slowest rank of each: 10, 20, 30, 40 above the point's own number.
      BOOST_TEST(row.time_us.median == static_cast<double>(row.shape.number("point")) + 25);
      BOOST_TEST(row.time_us.count == 4u);
    }
    BOOST_TEST(!fs::exists(folder.file("out.jsonl.rendezvous")));
  }
}

BOOST_AUTO_TEST_CASE(slurm_and_torchrun_variables_and_a_tcp_address_work_as_well) {
  Folder folder;
  for (const int code : run_ranks(folder, 2, "--points 2", "SLURM").codes) BOOST_TEST(code == 0);
  BOOST_TEST(finished_points(folder) == 4u);
  const std::string port = std::to_string(20000 + getpid() % 20000);
  for (const int code : run_ranks(folder, 2, "--points 5 --rendezvous tcp://127.0.0.1:" + port, "TORCHRUN").codes) BOOST_TEST(code == 0);
  BOOST_TEST(finished_points(folder) == 10u);  // the first four points were in the file and are not taken again
}

BOOST_AUTO_TEST_CASE(an_old_rendezvous_file_does_not_lead_astray) {
  Folder folder;
  std::ofstream(folder.file("out.jsonl.rendezvous")) << "rackcast-rendezvous-1 oldtoken 1 elsewhere 127.0.0.1 end\n";
  for (const int code : run_ranks(folder, 2, "--points 1").codes) BOOST_TEST(code == 0);
  BOOST_TEST(finished_points(folder) == 2u);
}

BOOST_AUTO_TEST_CASE(a_rank_that_never_comes_ends_the_others_within_the_limit) {
  Folder folder;
  setenv("RACKCAST_RANKS", "3", 1);
  const auto start = std::chrono::steady_clock::now();
  const std::string line = "RACKCAST_RANK=0 " + program + " " + folder.file("out.jsonl") + " --limit 2 2>" + folder.file("err.0") + " & RACKCAST_RANK=1 " +
                           program + " " + folder.file("out.jsonl") + " --limit 2 2>" + folder.file("err.1") + "; wait";
  BOOST_TEST(std::system(line.c_str()) == 0);
  unsetenv("RACKCAST_RANKS");
  BOOST_TEST(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 15);
  std::ifstream in(folder.file("err.0"));
  const std::string error((std::istreambuf_iterator<char>(in)), {});
  BOOST_TEST(error.find("rank 2 did not connect within 2 s") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_killed_rank_ends_the_run_at_once_and_finished_points_stay) {
  Folder folder;
  const Ended ended = run_ranks(folder, 4, "--points 4 --die 2,2 --limit 20");
  BOOST_TEST(ended.codes[2] == 9);
  for (const int r : {0, 1, 3}) BOOST_TEST(ended.codes[static_cast<std::size_t>(r)] == 1);
  BOOST_TEST(ended.seconds < 15);
  BOOST_TEST(ended.errors.find("rank 2 is gone") != std::string::npos);
  BOOST_TEST(finished_points(folder) == 10u);  // four with one rank, four with two, two with four
}

BOOST_AUTO_TEST_CASE(a_run_ended_by_kill_9_goes_on_where_it_stopped_and_has_every_point_once) {
  Folder folder;
  for (const char* killed_at : {"2", "5"}) {
    const Ended ended = run_ranks(folder, 1, std::string("--points 8 --kill 0,") + killed_at);
    BOOST_TEST(ended.codes[0] != 0);
    BOOST_TEST(finished_points(folder) == static_cast<std::size_t>(std::stoi(killed_at)));
  }
  std::ofstream(folder.file("out.jsonl"), std::ios::app) << R"({"kind":"point","op":"fa)";  // as a line that was being written
  BOOST_TEST(run_ranks(folder, 1, "--points 8").codes[0] == 0);
  const MeasurementFile file = read_measurements(folder.file("out.jsonl"));
  std::set<std::string> keys;
  for (const Measurement& point : file.points) BOOST_TEST(keys.insert(point.key()).second);
  BOOST_TEST(keys.size() == 8u);
  BOOST_TEST(file.headers.size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_hung_rank_ends_the_run_within_the_limit_and_is_named) {
  Folder folder;
  const auto start = std::chrono::steady_clock::now();
  const std::string out = folder.file("out.jsonl");
  // The hung process itself has to be ended from outside, as a launcher would.
  const std::string line = "(RACKCAST_RANKS=2 RACKCAST_RANK=1 timeout 12 " + program + " " + out + " --hang 1,1 --limit 3 2>/dev/null &) ; RACKCAST_RANKS=2 RACKCAST_RANK=0 " +
                           program + " " + out + " --hang 1,1 --limit 3 2>" + folder.file("err.0");
  const int status = std::system(line.c_str());
  BOOST_TEST(WEXITSTATUS(status) == 1);
  BOOST_TEST(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 12);
  std::ifstream in(folder.file("err.0"));
  const std::string error((std::istreambuf_iterator<char>(in)), {});
  BOOST_TEST(error.find("rank 1 did not come to 'samples' within 3 s") != std::string::npos);
  BOOST_TEST(finished_points(folder) == 4u);
}

BOOST_AUTO_TEST_CASE(a_rank_that_fails_tells_the_others_why) {
  Folder folder;
  const Ended ended = run_ranks(folder, 2, "--points 3 --throw 1,1");
  for (const int code : ended.codes) BOOST_TEST(code == 1);
  BOOST_TEST(ended.errors.find("rank 1 stopped: an accident") != std::string::npos);
  BOOST_TEST(finished_points(folder) == 4u);
}

BOOST_AUTO_TEST_CASE(mpirun_starts_four_ranks) {
  if (!have_mpirun()) {
    BOOST_TEST_MESSAGE("no mpirun here: skipped");
    return;
  }
  Folder folder;
  // A leak checker would count what Open MPI's plugins leave behind.
  const std::string mpirun = "ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout --kill-after=10 120 mpirun -n 4 --oversubscribe ";
  BOOST_TEST(std::system((mpirun + program + " " + folder.file("out.jsonl") + " --points 2 2>" + folder.file("err")).c_str()) == 0);
  BOOST_TEST(finished_points(folder) == 6u);
  const std::string by_file = " --rendezvous file://" + folder.file("meet") + " --points 3 2>" + folder.file("err");
  BOOST_TEST(std::system((mpirun + program + " " + folder.file("out.jsonl") + by_file).c_str()) == 0);
  BOOST_TEST(finished_points(folder) == 9u);
  const int status = std::system((mpirun + program + " " + folder.file("out.jsonl") + " --points 5 --die 3,4 --limit 10 >" + folder.file("log") + " 2>&1").c_str());
  BOOST_TEST(status != 0);
  BOOST_TEST(finished_points(folder) == 14u);  // all but the last point of four ranks
}
