// What cpack makes: programs, data, pages and completion in their places, and dependencies found by looking at the program.
#define BOOST_TEST_MODULE cli_package
#include <boost/test/unit_test.hpp>

#include "tests/support/program.hpp"

using namespace support;
namespace fs = std::filesystem;

namespace {

const std::string build = fs::path(RACKCAST_PROGRAM).parent_path().parent_path().string();

std::string only(const std::string& folder, const std::string& extension) {
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().string().ends_with(extension)) return entry.path().string();
  return {};
}

}  // namespace

BOOST_AUTO_TEST_CASE(completion_knows_verbs_options_and_names) {
  const auto complete = [](const std::string& words) {
    return shell("bash -c 'PATH=$(dirname \"$RACKCAST\"):$PATH; source packaging/rackcast.bash; COMP_WORDS=(" + words + "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _rackcast; echo \"${COMPREPLY[@]}\"'").out;
  };
  BOOST_TEST(complete("rackcast sw") == "sweep\n");
  BOOST_TEST(complete("rackcast sweep --jo") == "--jobs\n");
  BOOST_TEST(complete("rackcast trace gen") == "generate\n");
  BOOST_TEST(complete("rackcast step --gpu gb3") == "gb300\n");
  BOOST_TEST(complete("rackcast list rac") == "racks\n");
  BOOST_TEST(complete("rackcast check CMakeL") == "CMakeLists.txt\n");
}

BOOST_AUTO_TEST_CASE(every_verb_has_help_with_an_example_and_a_place_in_the_manual) {
  const TemporaryFolder folder;
  const std::string page = folder.path + "/rackcast.1";
  const Outcome made = shell("bash packaging/manual.sh \"$RACKCAST\" 1.2.3 " + page);
  BOOST_REQUIRE_MESSAGE(made.code == 0, made.err);
  const std::string text = content_of(page);
  BOOST_TEST(text.rfind(".TH RACKCAST 1 \"\" \"rackcast 1.2.3\"", 0) == 0U);
  const Outcome verbs = shell("\"$RACKCAST\" --help | awk '/^Subcommands:/ {inside = 1; next} inside && /^  [a-z]/ {print $1}'");
  int seen = 0;
  for (std::size_t at = 0, end; (end = verbs.out.find('\n', at)) != std::string::npos; at = end + 1, ++seen) {
    const std::string verb = verbs.out.substr(at, end - at);
    BOOST_TEST(shell("\"$RACKCAST\" " + verb + " --help").out.find("Example:\n  rackcast " + verb) != std::string::npos, verb);
    BOOST_TEST(text.find(".SS rackcast " + verb + "\n") != std::string::npos, verb);
  }
  BOOST_TEST(seen >= 15);
  BOOST_TEST(text.find(".SS rackcast trace generate\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_package_and_the_tarball_hold_what_a_user_needs) {
  if (!fs::exists(build + "/packaging/rackcast-calib.1") || shell("command -v dpkg-shlibdeps cpack").code != 0) {
    BOOST_TEST_MESSAGE("skipped: only some targets are built, or no cpack or dpkg-dev here");
    return;
  }
  const TemporaryFolder folder;
  const Outcome packed = shell("cd '" + build + "' && cpack -B " + folder.path);
  BOOST_REQUIRE_MESSAGE(packed.code == 0, packed.out + packed.err);
  const std::string package = only(folder.path, ".deb"), tarball = only(folder.path, ".tar.gz");
  const std::string control = shell("dpkg-deb -f " + package).out;
  for (const char* needed : {"Package: rackcast", "libc6 (>=", "libsimgrid3", "libyaml-cpp0", "libfmt", "libsqlite3-0", "zlib1g"}) BOOST_TEST(control.find(needed) != std::string::npos, control);
  const std::string listed = shell("dpkg-deb -c " + package).out;
  for (const char* file : {"/usr/bin/rackcast", "/usr/bin/rackcast-calib", "/usr/share/man/man1/rackcast.1", "/usr/share/man/man1/rackcast-calib.1",
                           "/usr/share/bash-completion/completions/rackcast", "/usr/share/zsh/vendor-completions/_rackcast", "/usr/share/doc/rackcast/CHANGELOG.md",
                           "/usr/share/doc/rackcast/NOTICE", "/usr/share/rackcast/scenarios/standard.yaml", "/usr/share/rackcast/scenarios/costs/gb300.yaml"})
    BOOST_TEST(listed.find(std::string(" .") + file + "\n") != std::string::npos, file);
  BOOST_REQUIRE(shell("cd " + folder.path + " && mkdir place && tar xf " + tarball + " -C place --strip-components 1").code == 0);
  const std::string program = folder.path + "/place/bin/rackcast";
  const Outcome check = shell("cd / && " + program + " check " + folder.path + "/place/share/rackcast/scenarios/standard.yaml");
  BOOST_TEST(check.code == 0, check.err);
  BOOST_TEST(shell("cd / && " + program + " list racks").out.find("gb300-nvl72") != std::string::npos);
  BOOST_TEST(shell("nm " + program + " 2>&1").out.find("no symbols") != std::string::npos);  // stripped
}
