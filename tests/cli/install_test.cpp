// What `cmake --install` puts somewhere else works there, without the source tree.
#define BOOST_TEST_MODULE cli_install
#include <boost/test/unit_test.hpp>

#include "tests/support/program.hpp"

BOOST_AUTO_TEST_CASE(an_installed_program_finds_its_data) {
  const std::string build = std::filesystem::path(RACKCAST_PROGRAM).parent_path().parent_path().string();
  const support::TemporaryFolder prefix;
  // Only the program and its data: other parts of the tree may not have been built.
  BOOST_REQUIRE(support::shell("mkdir -p " + prefix.path + "/bin && cp \"$RACKCAST\" " + prefix.path + "/bin/ && cmake -DCMAKE_INSTALL_PREFIX=" + prefix.path +
                               " -DCMAKE_INSTALL_LOCAL_ONLY=1 -P " + build + "/cmake_install.cmake").code == 0);
  const std::string program = prefix.path + "/bin/rackcast";
  const support::Outcome racks = support::shell("cd / && " + program + " list racks");
  BOOST_TEST(racks.code == 0);
  BOOST_TEST(racks.out.find("gb300-nvl72") != std::string::npos);
  const std::string standard = prefix.path + "/share/rackcast/scenarios/standard.yaml";
  BOOST_TEST(support::shell("cd / && " + program + " check " + standard).out == standard + ": ok (scenario)\n");
  // The installed data is what it reads, not the source tree: without it the name is not found.
  std::filesystem::remove(prefix.path + "/share/rackcast/scenarios/racks/gb300-nvl72.yaml");
  BOOST_TEST(support::shell("cd / && " + program + " check " + standard).code == 2);
}
