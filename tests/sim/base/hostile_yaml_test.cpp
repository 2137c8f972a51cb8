// Input made to hurt: each is refused with a message and within bounds of time and memory.
#define BOOST_TEST_MODULE hostile_yaml
#include <boost/test/unit_test.hpp>
#include <sys/resource.h>

#include <algorithm>
#include <ctime>

#include "sim/base/sanitizer.hpp"
#include "sim/base/schema_yaml.hpp"

using namespace rackcast;

namespace {

struct Box {
  std::string name = "x";
  std::vector<double> numbers;
};
void fields(Visitor& v, Box& b) {
  v.field("name", b.name, "a name");
  v.field("numbers", b.numbers, "numbers");
}

std::string problems(const std::string& text) {
  const std::clock_t start = std::clock();  // processor time: a busy machine changes nothing
  std::string what;
  try {
    read_yaml_as<Box>({"h.yaml", text});
  } catch (const UserError& error) {
    what = error.what();
  }
  BOOST_TEST(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 20.0);  // hangs only: machines differ
  return what;
}
bool says(const std::string& text, const std::string& part) {
  const std::string what = problems(text);
  BOOST_TEST_MESSAGE(what.substr(0, 200));
  return what.find(part) != std::string::npos;
}
std::string repeat(const std::string& piece, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += piece;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(deep_nesting_stops_at_its_bound) {
  BOOST_TEST(says("numbers: " + repeat("[", 100'000), "is nested more than 32 deep"));
  BOOST_TEST(says("name: " + repeat("{a: ", 100'000), "is nested more than 32 deep"));
  std::string block = "name:\n";
  for (std::size_t i = 1; i < 200; ++i) block += std::string(i, ' ') + "a:\n";
  BOOST_TEST(says(block, "is nested more than 32 deep"));
  // One mapping and 31 lists are the deepest that parses.
  BOOST_TEST(says("numbers: " + repeat("[", 31) + repeat("]", 31), "must be a single value"));
  BOOST_TEST(says("numbers: " + repeat("[", 32) + repeat("]", 32), "is nested more than 32 deep"));
}

BOOST_AUTO_TEST_CASE(alias_bombs_stop_at_their_bound) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 1; k < 10; ++k) bomb += ", " + before;
    bomb += "]\n";
  }
  BOOST_TEST(says(bomb, "the file has more than 200000 values (aliases counted as copies)"));
  BOOST_TEST(says("numbers: &a [*a]\n", "an alias may not stand inside its own anchor"));
  BOOST_TEST(says("numbers: *nothing\n", "is not YAML"));
}

BOOST_AUTO_TEST_CASE(an_honest_alias_works) {
  BOOST_TEST(read_yaml_as<Box>({"h.yaml", "name: &n abc\n"}).name == "abc");
  BOOST_TEST(problems("name: &n abc\nnumbers: [1, 2]\n").empty());
}

BOOST_AUTO_TEST_CASE(sizes_are_bounded) {
  BOOST_TEST(problems("name: " + std::string(65'536, 'a')).empty());
  BOOST_TEST(says("name: " + std::string(65'537, 'a'), "is a value of more than 65536 bytes"));
  BOOST_TEST(says("name: " + std::string(3U << 20U, 'a'), "is larger than 2 MiB"));
  BOOST_TEST(says("numbers: [" + repeat("1,", 500'000) + "1]", "the file has more than 200000 values"));
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_text_are_refused) {
  using namespace std::string_literals;
  BOOST_TEST(problems("name: a\0b\n"s) == "h.yaml:1:8: byte 0x00 is a control character");
  BOOST_TEST(problems("name: a\nnumbers: \x01[]\n") == "h.yaml:2:10: byte 0x01 is a control character");
  BOOST_TEST(problems("name: \xff\n") == "h.yaml:1:7: byte 0xff is not UTF-8 text");
  BOOST_TEST(problems("name: \xc0\x80\n") == "h.yaml:1:7: byte 0xc0 is not UTF-8 text");
  BOOST_TEST(problems("name: \xed\xa0\x80\n") == "h.yaml:1:7: byte 0xed is not UTF-8 text");
  BOOST_TEST(problems("name: \xf4\x90\x80\x80\n") == "h.yaml:1:7: byte 0xf4 is not UTF-8 text");
  BOOST_TEST(problems("\xff\xfen\0"s) == "h.yaml:1:1: byte 0xff is not UTF-8 text");
  BOOST_TEST(problems("name: caf\xc3\xa9\n").empty());
}

BOOST_AUTO_TEST_CASE(a_byte_order_mark_and_dos_line_ends_do_no_harm) {
  BOOST_TEST(read_yaml_as<Box>({"h.yaml", "\xef\xbb\xbfname: abc\r\nnumbers: [1]\r\n"}).name == "abc");
}

BOOST_AUTO_TEST_CASE(yaml_oddities_are_named) {
  BOOST_TEST(says("name:\n\t- x\n", "h.yaml:2:2: is not YAML"));
  BOOST_TEST(says("base: &b {name: x}\n<<: *b\n", "<<: merge keys are not supported: write the keys out, or use base: NAME"));
  BOOST_TEST(says("name: !!binary abc\n", "tags are not used here: drop 'tag:yaml.org,2002:binary'"));
  BOOST_TEST(says("name: a\n---\nname: b\n", "a second document starts here: one file holds one document"));
  BOOST_TEST(says("? [a]\n: b\n", "a key must be a word, not a list"));
  BOOST_TEST(says("name: 'a\n", "is not YAML"));
  BOOST_TEST(says(std::string("name: \"\x7f\"\n"), "is a control character"));
}

BOOST_AUTO_TEST_CASE(a_message_shows_only_the_start_of_a_long_value) {
  const std::string what = problems("numbers: [" + std::string(5000, 'z') + "]\n");
  BOOST_TEST(what.size() < 200U);
}

BOOST_AUTO_TEST_CASE(the_costliest_files_stay_in_bounds) {
  const std::size_t bytes = 2U << 20U;
  for (const std::string piece : {"{a,", "a: b, ", "&a x, ", "- ", "? ", "\"a\" ", "a: 1\n", "word\n  ", "!a ", "#"}) {
    const std::string head = piece == "a: 1\n" ? "" : "numbers: [";
    BOOST_TEST(!problems(head + repeat(piece, (bytes - 20) / piece.size())).empty(), piece);
  }
}

BOOST_AUTO_TEST_CASE(a_flood_of_problems_is_cut_off) {
  const std::string what = problems(repeat("name: 1\n", 1000));
  BOOST_TEST(std::count(what.begin(), what.end(), '\n') == 100);
  BOOST_TEST(what.find("h.yaml: has 899 more problems") != std::string::npos);
}

#if !RACKCAST_ASAN  // which takes several times the memory itself
BOOST_AUTO_TEST_CASE(memory_stays_bounded) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  BOOST_TEST(usage.ru_maxrss < 700'000);  // KiB, over all of the above
}
#endif
