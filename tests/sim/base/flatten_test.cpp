#define BOOST_TEST_MODULE flatten
#include <boost/test/unit_test.hpp>

#include "sim/base/flatten.hpp"

using namespace rackcast;

namespace {

struct Part { int engines = 2; Seconds wait{0.005}; };
void fields(Visitor& v, Part& p) {
  v.field("engines", p.engines, "how many");
  v.field("wait", p.wait, "how long");
}
constexpr Choice colours[] = {{"red", ""}, {"blue", ""}};
enum class Colour { red, blue };
struct Whole {
  std::string name = "n";
  std::optional<Part> prefill, decode;
  std::vector<Part> pools{Part{}, Part{7, Seconds{1}}};
  std::map<std::string, Part> models{{"v4.1", Part{}}};
  Colour colour = Colour::blue;
  Tokens chunk{16384};
  bool on = true;
};
void fields(Visitor& v, Whole& w) {
  v.field("name", w.name, "");
  v.optional_group("prefill", w.prefill, "");
  v.optional_group("decode", w.decode, "");
  v.list("pools", w.pools, "");
  v.map("models", w.models, "");
  v.choice("colour", w.colour, colours, "");
  v.field("chunk", w.chunk, "");
  v.field("on", w.on, "");
}

std::string seen(const FlatValue& value) {
  return value.key + "=" + value.text + (value.number ? "#" : "") + (value.absent ? " absent" : "");
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_value_stands_under_its_dotted_key) {
  Whole whole;
  whole.decode = Part{};
  std::vector<std::string> lines;
  for (const FlatValue& value : flatten_of(whole)) lines.push_back(seen(value));
  const std::vector<std::string> wanted = {
      "name=n", "prefill.engines=2# absent", "prefill.wait=5 ms# absent", "decode.engines=2#", "decode.wait=5 ms#",
      "pools[0].engines=2#", "pools[0].wait=5 ms#", "pools[1].engines=7#", "pools[1].wait=1 s#",
      "models.\"v4.1\".engines=2#", "models.\"v4.1\".wait=5 ms#", "colour=blue", "chunk=16K#", "on=true#"};
  BOOST_TEST(lines == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_name_may_be_the_end_of_one_key) {
  const std::vector<FlatValue> values = flatten_of(Whole{});
  BOOST_TEST(find_flat(values, "chunk")->number.value() == 16384);
  BOOST_TEST(find_flat(values, "decode.wait")->number.value() == 0.005);
  std::string why;
  BOOST_TEST(find_flat(values, "engines", &why) == nullptr);
  BOOST_TEST(why == "'engines' may mean prefill.engines or decode.engines: write more of it");
  BOOST_TEST(find_flat(values, "decode.engnes", &why) == nullptr);
  BOOST_TEST(why == "'decode.engnes' is no key of a scenario; did you mean 'decode.engines'?");
  BOOST_TEST(find_flat(values, "ngines", &why) == nullptr);
}
