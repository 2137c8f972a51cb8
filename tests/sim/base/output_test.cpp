#define BOOST_TEST_MODULE output
#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "sim/base/error.hpp"
#include "sim/base/output.hpp"
#include "tests/support/program.hpp"

using namespace rackcast;
namespace fs = std::filesystem;

namespace {
std::string problem(const std::string& path) {
  try {
    write_output_file(path, "x");
  } catch (const UserError& error) {
    return error.problems().front().rule;
  }
  return "";
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_file_is_written_and_written_again) {
  const support::TemporaryFolder folder;
  const std::string path = folder.path + "/a.json";
  write_output_file(path, "one");
  write_output_file(path, "two");
  BOOST_TEST(support::content_of(path) == "two");
  BOOST_TEST(std::distance(fs::directory_iterator(folder.path), {}) == 1);
}

BOOST_AUTO_TEST_CASE(links_and_special_files_are_refused_and_left_alone) {
  const support::TemporaryFolder folder;
  const std::string target = folder.file("precious", "keep");
  fs::create_symlink(target, folder.path + "/link");
  BOOST_TEST(problem(folder.path + "/link") == "is a link; output is not written through links");
  BOOST_TEST(support::content_of(target) == "keep");
  BOOST_TEST(problem("/dev/null") == "is not a plain file");
  BOOST_TEST(problem(folder.path) == "is not a plain file");
  BOOST_TEST(problem(folder.path + "/none/x").rfind("cannot be written", 0) == 0U);
  fs::create_directory_symlink(folder.path, folder.path + "/dir");
  BOOST_CHECK_THROW(make_output_folder(folder.path + "/dir"), UserError);
  BOOST_CHECK_THROW(make_output_folder(target), UserError);
  BOOST_TEST(fs::is_directory(make_output_folder(folder.path + "/new/deep")));
}
