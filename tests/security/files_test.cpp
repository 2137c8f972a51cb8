// What the program runs, writes, opens and waits for.
#define BOOST_TEST_MODULE security_files
#include <boost/test/unit_test.hpp>
#include <sys/resource.h>
#include <sys/stat.h>

#include <sstream>
#include <vector>

#include "sim/base/sanitizer.hpp"
#include "tests/support/program.hpp"

using namespace support;
namespace fs = std::filesystem;

namespace {

const std::string tiny = " --set workload.kind=closed_loop --set workload.input=1K --set workload.output=16 --set workload.concurrency=4 --set workload.requests=20";

const std::string sweep_text = "name: s\nbase: standard\nset: [workload.kind=closed_loop, workload.input=1K, workload.output=16, workload.requests=20]\n"
                               "axes: [{key: workload.concurrency, values: [4, 8]}]\n";
const std::string trace_text = R"({"id":"s","block_size":64,"hash_id_scope":"local","requests":[{"t":0,"type":"n","in":64,"out":8,"api_time":1,"hash_ids":[1]}]})" "\n";

// One command for every kind of file that is written; OUT stands for its name, DIR for a folder with inputs.
struct Writer {
  std::string name, command;
};
const std::vector<Writer> writers = {
    {"run", "run scenarios/standard.yaml --out OUT" + tiny},
    {"timeline", "run scenarios/standard.yaml --timeline OUT" + tiny},
    {"sweep", "sweep DIR/s.yaml --out OUT"},
    {"report", "report DIR/r.sqlite --out OUT"},
    {"export", "export scenarios/standard.yaml --format vllm --out OUT"},
    {"trace convert", "trace convert DIR/t.jsonl --out OUT"},
    {"trace generate", "trace generate --like DIR/t.jsonl --out OUT"},
    {"eplb", "eplb DIR/counts.csv --ep 2 --redundant-experts 2 --policy static --out OUT"},
    {"fit", "fit DIR/points.jsonl --out OUT"},
};

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) text.replace(at, what.size(), with);
  return text;
}

struct Inputs : TemporaryFolder {
  Inputs() {
    file("s.yaml", sweep_text);
    file("t.jsonl", trace_text);
    std::string counts = "layer,expert,tokens\n";
    for (int layer = 0; layer < 2; ++layer)
      for (int expert = 0; expert < 8; ++expert) counts += std::to_string(layer) + "," + std::to_string(expert) + "," + std::to_string(100 * (expert + 1)) + "\n";
    file("counts.csv", counts);
    fs::copy_file(RACKCAST_SOURCE_DIR "/scenarios/measurements/h200/quick-experts.jsonl", path + "/points.jsonl");
    const Outcome sweep = shell("\"$RACKCAST\" sweep '" + path + "/s.yaml' --out '" + path + "/r.sqlite'");
    BOOST_REQUIRE_MESSAGE(sweep.code == 0, sweep.err);
  }
  std::string command(const Writer& writer, const std::string& out) const {
    return "\"$RACKCAST\" " + replaced(replaced(writer.command, "DIR", path), "OUT", "'" + out + "'");
  }
};

bool has(const std::string& tool) { return shell("command -v " + tool).code == 0; }

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_that_runs_other_programs_is_linked) {
  const Outcome symbols = shell("nm -D --undefined-only \"$RACKCAST\"");
  BOOST_REQUIRE_MESSAGE(symbols.code == 0, symbols.err);
  std::istringstream lines(symbols.out);
  bool fork_seen = false;
  for (std::string line, word; std::getline(lines, line);) {
    std::istringstream(line) >> word >> word;
    word = word.substr(0, word.find('@'));
    fork_seen |= word == "fork";
    BOOST_TEST((word != "system" && word != "popen" && word.rfind("posix_spawn", 0) != 0 && word.rfind("execl", 0) != 0 && word.rfind("execv", 0) != 0 && word != "fexecve"), word);
  }
  BOOST_TEST(fork_seen);  // sweeps fork; without it nothing was looked at
}

BOOST_AUTO_TEST_CASE(only_named_files_are_written_nothing_is_run_and_no_socket_is_opened) {
  if (!has("strace") || shell("strace -o /dev/null true").code != 0) {
    BOOST_TEST_MESSAGE("skipped: no strace here");
    return;
  }
  const Inputs inputs;
  for (const Writer& writer : writers) {
    const TemporaryFolder place;
    const std::string out = place.path + "/out", log = inputs.path + "/strace";
    const Outcome outcome = shell("export ASAN_OPTIONS=detect_leaks=0; strace -f -qq -e signal=none -e trace=%file,socket -o '" + log + "' " + inputs.command(writer, out));
    BOOST_REQUIRE_MESSAGE(outcome.code == 0, writer.name + ": " + outcome.err);
    BOOST_TEST(fs::exists(out), writer.name);
    std::ifstream lines(log);
    int programs = 0;
    for (std::string line; std::getline(lines, line);) {
      const std::string call = line.substr(line.find(' ') + 1);
      const auto starts = [&](const char* name) { return call.find(name) == call.find_first_not_of(' '); };
      if (starts("execve(")) ++programs;
      if (starts("socket(")) BOOST_TEST(call.find("AF_INET") == std::string::npos, writer.name + ": " + line);
      const bool writes = call.find("O_WRONLY") != std::string::npos || call.find("O_RDWR") != std::string::npos || call.find("O_CREAT") != std::string::npos ||
                          starts("rename") || starts("unlink") || starts("mkdir") || starts("link") || starts("symlink") || starts("truncate") || starts("chmod") || starts("chown") || starts("mknod");
      if (!writes) continue;
      const std::size_t quote = call.find('"') + 1;
      const std::string path = call.substr(quote, call.find('"', quote) - quote);
      // A store that is only read has its index of the log beside it; the fork server tells the kernel who dies first.
      const bool fine = path.rfind(place.path + "/", 0) == 0 || path.rfind(inputs.path + "/r.sqlite-", 0) == 0 || path == "/dev/null" || path == "/proc/self/oom_score_adj";
      BOOST_TEST(fine, writer.name + ": " + line);
    }
    BOOST_TEST(programs == 1, writer.name);
  }
}

BOOST_AUTO_TEST_CASE(links_pipes_folders_and_devices_are_refused_as_output_and_left_alone) {
  const Inputs inputs;
  for (const Writer& writer : writers) {
    const TemporaryFolder place;
    const std::string precious = place.file("precious", "keep"), missing = place.path + "/missing", folder = place.path + "/folder";
    fs::create_directory(folder);
    fs::create_symlink(precious, place.path + "/link");
    fs::create_symlink(missing, place.path + "/dangling");
    fs::create_directory_symlink(folder, place.path + "/folder-link");
    BOOST_REQUIRE(mkfifo((place.path + "/pipe").c_str(), 0600) == 0);
    for (const char* name : {"link", "dangling", "folder-link", "pipe", "folder", "/dev/full"}) {
      if (writer.name == "run" && std::string(name) == "folder") continue;  // what it asks for
      const std::string out = name[0] == '/' ? name : place.path + "/" + name;
      const Outcome outcome = shell("timeout 60 " + inputs.command(writer, out));
      BOOST_TEST(outcome.code == 2, writer.name + " to " + name + ": " + std::to_string(outcome.code) + " " + outcome.err);
    }
    BOOST_TEST(content_of(precious) == "keep", writer.name);
    BOOST_TEST(!fs::exists(missing), writer.name);
    BOOST_TEST(fs::is_empty(folder), writer.name);
    for (const auto& entry : fs::directory_iterator(place.path))  // not even a lock or a draft beside them
      BOOST_TEST(entry.path().filename().string().find('.') == std::string::npos, writer.name + " left " + entry.path().string());
  }
}

BOOST_AUTO_TEST_CASE(a_pipe_is_no_input_and_nothing_waits_for_it) {
  const TemporaryFolder place;
  const std::string pipe = place.path + "/pipe.yaml", out = place.path + "/out";
  BOOST_REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string command : {"run PIPE", "check PIPE", "sweep PIPE --out OUT", "plan PIPE", "compare PIPE PIPE", "sensitivity PIPE", "export PIPE --format vllm", "report PIPE --out OUT",
                                     "trace stats PIPE", "trace convert PIPE --out OUT", "trace generate --like PIPE", "fit PIPE --out OUT", "eplb PIPE --ep 2", "validate --data PIPE",
                                     "run scenarios/standard.yaml --set workload.trace=PIPE", "run scenarios/standard.yaml --set model=PIPE",
                                     "run scenarios/eplb-none.yaml --set workload.experts.skew=counts --set workload.experts.counts=PIPE",
                                     "step --model PIPE --gpu gb300 --dep 32 --case 1*1@1K"}) {
    const Outcome outcome = shell("timeout 20 \"$RACKCAST\" " + replaced(replaced(command, "PIPE", pipe), "OUT", out));
    BOOST_TEST(outcome.code == 2, command + ": " + std::to_string(outcome.code) + " " + outcome.err);
    BOOST_TEST((outcome.err.find("is not a plain file") != std::string::npos || outcome.err.find("is not a file that can be read") != std::string::npos), command + ": " + outcome.err);
  }
}

// Last, since it judges the most memory that any program of these tests took.
BOOST_AUTO_TEST_CASE(packed_bombs_end_soon_and_in_little_memory) {
  const TemporaryFolder place;
  // A gzip file may consist of several: one session, then 64 MiB of blanks, twenty times.
  place.file("one.jsonl", trace_text);
  BOOST_REQUIRE(shell("cd " + place.path + " && head -c 67108864 /dev/zero | tr '\\0' ' ' | gzip > blanks && gzip < one.jsonl > bomb.jsonl.gz && for i in $(seq 20); do cat blanks; done >> bomb.jsonl.gz").code == 0);
  const Outcome trace = shell("timeout 60 \"$RACKCAST\" trace stats " + place.path + "/bomb.jsonl.gz");
  BOOST_TEST(trace.code == 2);
  BOOST_TEST(trace.err.find("unpacks to over 1 GiB and over 500 times its size") != std::string::npos, trace.err);
  const Outcome fit = shell("timeout 60 \"$RACKCAST\" fit " + place.path + "/bomb.jsonl.gz --out " + place.path + "/x.yaml");
  BOOST_TEST(fit.code == 2);
  BOOST_TEST(fit.err.find("holds more than 256 MiB of text") != std::string::npos, fit.err);
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
#if !RACKCAST_ASAN  // which takes several times the memory itself
  BOOST_TEST(usage.ru_maxrss < 1024 * 1024);  // KiB
#endif
}
