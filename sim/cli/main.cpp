// The command line: finds the verb, runs it, and turns what went wrong into an exit code.
#include <fmt/core.h>
#include <sys/auxv.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <new>
#include <system_error>

#include "sim/base/error.hpp"
#include "sim/base/text.hpp"
#include "sim/cli/standard_streams.hpp"
#include "sim/cli/verbs.hpp"

namespace {

enum ExitCode { done = 0, bound_missed = 1, bad_input = 2, not_here = 3, our_bug = 70 };

int complain(const std::exception& error, ExitCode code, const char* prefix = "rackcast: ") {
  std::fflush(stdout);
  fmt::print(stderr, "{}{}\n", prefix, error.what());
  if (code == our_bug) fmt::print(stderr, "rackcast: this is a bug in rackcast, not in your input\n");
  return code;
}

// Results may go to a full disk or a closed pipe; that must not look like success.
int close_stdout(int code) {
  if (std::ferror(stdout) == 0 && std::fflush(stdout) == 0) return code;
  fmt::print(stderr, "rackcast: the result could not be written to stdout\n");
  return bad_input;
}

int run(const rackcast::Action& action) {
  try {
    return close_stdout(action());
  } catch (const rackcast::UserError& error) {
    const bool has_place = !error.problems().empty() && !error.problems().front().file.empty();
    return complain(error, bad_input, has_place ? "" : "rackcast: ");
  } catch (const rackcast::BoundMissed& error) {
    return complain(error, bound_missed);
  } catch (const rackcast::Unavailable& error) {
    return complain(error, not_here);
  } catch (const std::system_error& error) {  // what fmt::print throws
    return std::ferror(stdout) != 0 ? close_stdout(done) : complain(error, our_bug);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "rackcast: out of memory\n");
    return our_bug;
  } catch (const std::exception& error) {
    return complain(error, our_bug);
  }
}

std::string verb_hint(const std::string& word) {
  std::vector<std::string> names;
  for (const rackcast::Verb& verb : rackcast::verbs()) names.emplace_back(verb.name);
  const std::string hint = rackcast::near_match(word, names);
  return hint.empty() ? "`rackcast --help` lists the verbs" : hint;
}

}  // namespace

int main(int argc, char** argv) {
  rackcast::secure_standard_streams();
  CLI::App app{"Predicts how a rack of GPUs will serve a large language model"};
  app.set_version_flag("--version", RACKCAST_VERSION);
  app.failure_message(CLI::FailureMessage::simple);
  app.require_subcommand(1);

  rackcast::Program program;
  std::error_code code;
  std::filesystem::path executable = std::filesystem::read_symlink("/proc/self/exe", code);
  if (code) {  // a root without /proc
    const char* started_as = reinterpret_cast<const char*>(getauxval(AT_EXECFN));  // NOLINT(performance-no-int-to-ptr): so it is given
    executable = std::filesystem::canonical(started_as, code);
  }
  program.executable_dir = executable.parent_path().string();
  std::map<const CLI::App*, rackcast::Action> actions;
  app.add_option("--data-dir", program.data_dir, "folder with models/, gpus/, racks/, ... (also: RACKCAST_SCENARIOS)")->type_name("DIR");
  for (const rackcast::Verb& verb : rackcast::verbs()) {
    CLI::App* sub = app.add_subcommand(std::string(verb.name), std::string(verb.help));
    sub->footer(fmt::format("Example:\n  {}", verb.example));
    sub->fallthrough();
    actions[sub] = verb.setup(*sub, program);
  }

  if (argc > 1 && argv[1][0] != '-') {
    const auto table = rackcast::verbs();
    if (std::ranges::find(table, std::string_view(argv[1]), &rackcast::Verb::name) == table.end()) {
      fmt::print(stderr, "rackcast: {} is not a verb; {}\n", rackcast::quote_input(argv[1]), verb_hint(argv[1]));
      return bad_input;
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return close_stdout(app.exit(error));  // --help, --version
    fmt::print(stderr, "rackcast: {}\n", error.what());
    const auto used = app.get_subcommands();
    fmt::print(stderr, "`rackcast {}--help` shows how it is used\n", used.empty() ? "" : used.front()->get_name() + " ");
    return bad_input;
  }
  return run(actions.at(app.get_subcommands().front()));
}
