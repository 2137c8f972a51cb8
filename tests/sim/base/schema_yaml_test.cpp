#define BOOST_TEST_MODULE schema_yaml
#include <boost/test/unit_test.hpp>

#include "sim/base/schema_yaml.hpp"

using namespace rackcast;
using namespace rackcast::literals;

namespace {

enum class Color { red, green };
constexpr Choice colors[] = {{"red", "warm"}, {"green", "cool"}};

struct Inner {
  int count = 1;
  Seconds wait = 5_ms;
};
void fields(Visitor& v, Inner& x) {
  v.field("count", x.count, "how many").require(x.count > 0, "must be > 0");
  v.field("wait", x.wait, "how long");
}

struct Thing {
  std::string name;
  bool flag = false;
  double ratio = 0.5;
  std::uint64_t seed = 42;
  Tokens length{8192};
  Bytes memory = 64_GiB;
  Bytes tier{-1};
  Color color = Color::red;
  std::vector<int> sizes{1, 2};
  std::vector<std::string> words;
  Inner inner;
  std::optional<Inner> extra;
  std::vector<Inner> pools{Inner{7, 1_s}};
  std::map<std::string, Inner> table;
  Inner part;
};
void fields(Visitor& v, Thing& x) {
  v.field("name", x.name, "a name").required();
  v.field("flag", x.flag, "a flag");
  v.field("ratio", x.ratio, "a ratio").require(x.ratio <= 1, "must be <= 1");
  v.field("seed", x.seed, "a seed");
  v.field("length", x.length, "tokens");
  v.field("memory", x.memory, "bytes").require(x.memory > 0_B, "must be > 0 B");
  v.automatic("tier", x.tier, "bytes of a node", "node");
  v.choice("color", x.color, colors, "a color");
  v.field("sizes", x.sizes, "numbers");
  v.field("words", x.words, "texts");
  v.group("inner", x.inner, "one");
  v.optional_group("extra", x.extra, "maybe one");
  v.list("pools", x.pools, "some");
  v.map("table", x.table, "named ones");
  v.reference("part", x.part, "parts", "a file");
}

const std::map<std::string, std::string> parts = {
    {"big", "count: 9\nwait: 2 s\n"},     {"bigger", "base: big\ncount: 10\n"}, {"loop", "base: loop\n"},
    {"wrong", "count: 0\nwaits: 1 s\n"},  {"broken", "count: [1\n"},
};

ReadOptions options(std::vector<std::string> sets = {}) {
  ReadOptions o;
  o.sets = std::move(sets);
  o.resolve = [](std::string_view kind, std::string_view name, std::string_view) -> YamlSource {
    BOOST_TEST(kind == "parts");
    const auto found = parts.find(std::string(name));
    if (found == parts.end()) throw UserError("'" + std::string(name) + "' is not among the parts");
    return {"parts/" + found->first + ".yaml", found->second};
  };
  return o;
}
Thing read(const std::string& text, std::vector<std::string> sets = {}) {
  return read_yaml_as<Thing>({"a.yaml", text}, options(std::move(sets)));
}
std::string problems(const std::string& text, std::vector<std::string> sets = {}) {
  try {
    read(text, std::move(sets));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_absent_key_keeps_its_default) {
  const Thing x = read("name: n\n");
  BOOST_TEST(x.ratio == 0.5);
  BOOST_TEST(x.pools.size() == 1U);
  BOOST_TEST(x.pools[0].count == 7);
  BOOST_TEST(x.sizes.size() == 2U);
  BOOST_TEST(!x.extra.has_value());
  BOOST_TEST(x.tier.value() == -1);
}

BOOST_AUTO_TEST_CASE(every_kind_of_value_is_read) {
  const Thing x = read(
      "name: \"a: b\"\nflag: true\nratio: 0.25\nseed: 18446744073709551615\nlength: 16K\nmemory: 1.5 TB\n"
      "tier: 840 GiB per node\ncolor: green\nsizes: [3]\nwords: [x, 'y z']\ninner: {count: 2}\nextra: {wait: 0}\n"
      "pools: []\ntable: {k.v: {count: 4}}\npart: bigger\n");
  BOOST_TEST(x.name == "a: b");
  BOOST_TEST(x.flag);
  BOOST_TEST(x.seed == 18446744073709551615ULL);
  BOOST_TEST(x.length.count == 16384);
  BOOST_TEST(x.memory.value() == 1.5e12);
  BOOST_TEST(x.tier.value() == (840_GiB).value());
  BOOST_CHECK(x.color == Color::green);
  BOOST_TEST(x.sizes.at(0) == 3);
  BOOST_TEST(x.words.at(1) == "y z");
  BOOST_TEST(x.inner.count == 2);
  BOOST_TEST(x.inner.wait.value() == 0.005);
  BOOST_TEST(x.extra->wait.value() == 0);
  BOOST_TEST(x.pools.empty());
  BOOST_TEST(x.table.at("k.v").count == 4);
  BOOST_TEST(x.part.count == 10);
  BOOST_TEST(x.part.wait.value() == 2);
}

BOOST_AUTO_TEST_CASE(what_is_written_reads_back_equal) {
  Thing x = read("name: 'true'\nratio: 0.1\nmemory: 284208 MiB\ntier: 840 GiB per node\nextra: {wait: 0.3 us}\n"
                 "table: {'deepseek-v4.1': {}, '1': {wait: 1234567 ns}}\npart: big\nwords: ['', ' a', \"q\\\"\\\\\\n\", '#no', '- x', 'caf\u00e9']\n");
  const std::string text = yaml_of(x);
  BOOST_TEST(yaml_of(read(text)) == text);
  BOOST_TEST(read(text).words == x.words, boost::test_tools::per_element());
  BOOST_TEST(read(text).name == "true");
  BOOST_TEST(text.find("memory: 284208 MiB\n") != std::string::npos);
  BOOST_TEST(text.find("tier: 840 GiB per node\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(all_problems_come_at_once_with_their_places) {
  BOOST_TEST(problems("name: n\nratio: 1.5\nmemory: 64\ncolour: red\ninner:\n  count: 0\n  wiat: 1 s\nname: again\n") ==
             "a.yaml:2:8: ratio: must be <= 1 (it is '1.5')\n"
             "a.yaml:3:9: memory: '64' needs a unit, as in '64 GiB'\n"
             "a.yaml:4:1: colour: is not a key here; did you mean 'color'?\n"
             "a.yaml:6:10: inner.count: must be > 0 (it is '0')\n"
             "a.yaml:7:3: inner.wiat: is not a key here; did you mean 'wait'?\n"
             "a.yaml:8:1: name: is given twice (first on line 1): keep one");
}

BOOST_AUTO_TEST_CASE(a_missing_required_key_is_named) {
  BOOST_TEST(problems("") == "a.yaml:1:1: name: is missing and has no default");
  BOOST_TEST(problems("flag: true\n") == "a.yaml:1:1: name: is missing and has no default");
}

BOOST_AUTO_TEST_CASE(a_wrong_kind_of_value_is_refused) {
  BOOST_TEST(problems("name: [a]\n") == "a.yaml:1:7: name: must be a single value, not a list");
  BOOST_TEST(problems("name: n\ninner: 5\n") == "a.yaml:2:8: inner: '5' must be a mapping, not a single value");
  BOOST_TEST(problems("name: n\npools: {}\n") == "a.yaml:2:8: pools: must be a list, not a mapping");
  BOOST_TEST(problems("name: n\npools: [5]\n") == "a.yaml:2:9: pools[0]: must be a mapping, not a single value");
  BOOST_TEST(problems("name:\n").find("must be a single value, not nothing") != std::string::npos);
  BOOST_TEST(problems("[]\n") == "a.yaml:1:1: must be a mapping (key: value), not a list");
  BOOST_TEST(problems("name: n\nflag: yes\n") == "a.yaml:2:7: flag: 'yes' must be true or false");
  BOOST_TEST(problems("name: n\ncolor: gren\n") ==
             "a.yaml:2:8: color: 'gren' must be one of red, green; did you mean 'green'?");
  BOOST_TEST(problems("name: n\ntier: 840 GiB\n") ==
             "a.yaml:2:7: tier: '840 GiB' must say per node, as in '840 GiB per node', or auto");
}

BOOST_AUTO_TEST_CASE(numbers_are_strict) {
  const auto count = [](const std::string& text) { return problems("name: n\ninner: {count: " + text + "}\n"); };
  BOOST_TEST(count("010").find("'010' starts with 0, which YAML reads as octal: drop the leading zeros") != std::string::npos);
  for (const char* bad : {"0x10", "1_000", "1e3", "2.0", "+1", ".inf", ".nan", "1 2", "''"})
    BOOST_TEST(!count(bad).empty(), bad);
  BOOST_TEST(count("2147483648").find("is out of range") != std::string::npos);
  BOOST_TEST(count("2147483647").empty());
  BOOST_TEST(count("9223372036854775808").find("is out of range") != std::string::npos);
  const auto ratio = [](const std::string& text) { return problems("name: n\nratio: " + text + "\n"); };
  for (const char* bad : {".inf", "-.inf", ".nan", "nan", "inf", "1e999", "0x1p3", "1,5"}) BOOST_TEST(!ratio(bad).empty(), bad);
  for (const char* good : {"1", "1e-3", "-0.5", "0"}) BOOST_TEST(ratio(good).empty(), good);
  BOOST_TEST(!problems("name: n\nseed: -1\n").empty());
}

BOOST_AUTO_TEST_CASE(a_reference_is_inline_a_name_or_a_base_with_changes) {
  BOOST_TEST(read("name: n\npart: {count: 3}\n").part.count == 3);
  BOOST_TEST(read("name: n\npart: big\n").part.count == 9);
  const Thing x = read("name: n\npart: {base: big, count: 4}\n");
  BOOST_TEST(x.part.count == 4);
  BOOST_TEST(x.part.wait.value() == 2);
  BOOST_TEST(problems("name: n\npart: huge\n") == "a.yaml:2:7: part: 'huge' is not among the parts");
  BOOST_TEST(problems("name: n\npart: wrong\n") ==
             "parts/wrong.yaml:1:8: part.count: must be > 0 (it is '0')\n"
             "parts/wrong.yaml:2:1: part.waits: is not a key here; did you mean 'wait'?");
  BOOST_TEST(problems("name: n\npart: broken\n").rfind("parts/broken.yaml:2:1: is not YAML", 0) == 0U);
  BOOST_TEST(problems("name: n\npart: loop\n").find("is it a circle?") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(set_overrides_before_the_walk) {
  BOOST_TEST(read("name: n\n", {"inner.count=3"}).inner.count == 3);
  BOOST_TEST(read("name: n\ninner: {count: 2}\n", {"inner.count=3", "inner.count=4"}).inner.count == 4);
  BOOST_TEST(read("name: n\npools: [{count: 1}, {count: 2}]\n", {"pools[1].count=5"}).pools[1].count == 5);
  BOOST_TEST(read("name: n\npools: []\n", {"pools[0].count=5"}).pools.size() == 1U);
  BOOST_TEST(read("name: n\n", {"sizes=[4, 5, 6]"}).sizes.size() == 3U);
  BOOST_TEST(read("name: n\ntable: {a.b: {}}\n", {"table.\"a.b\".count=8"}).table.at("a.b").count == 8);
  BOOST_TEST(!read("name: n\nextra: {}\n", {"extra=null"}).extra.has_value());
  BOOST_TEST(read("name: n\n", {"tier=2 GiB per node"}).tier.value() == (2_GiB).value());
}

BOOST_AUTO_TEST_CASE(set_reaches_into_referenced_files) {
  BOOST_TEST(read("name: n\npart: big\n", {"part.count=3"}).part.count == 3);
  BOOST_TEST(read("name: n\npart: bigger\n", {"part.wait=3 s"}).part.wait.value() == 3);
  BOOST_TEST(read("name: n\npart: bigger\n", {"part.wait=3 s"}).part.count == 10);
  BOOST_TEST(read("name: n\npart: {base: big, count: 4}\n", {"part.count=5", "part.wait=1 s"}).part.count == 5);
  BOOST_TEST(read("name: n\npart: big\n", {"part=bigger"}).part.count == 10);
  BOOST_TEST(read("name: n\n", {"part=big", "part.count=2"}).part.count == 2);
}

BOOST_AUTO_TEST_CASE(problems_of_a_set_cite_it) {
  BOOST_TEST(problems("name: n\n", {"inner.count=0"}) == "--set inner.count=0: inner.count: must be > 0 (it is '0')");
  BOOST_TEST(problems("name: n\n", {"inner.cuont=1"}) ==
             "--set inner.cuont=1: inner.cuont: is not a key here; did you mean 'count'?");
  BOOST_TEST(problems("name: n\npart: big\n", {"part.count=x"}) ==
             "--set part.count=x: part.count: 'x' is not a whole number");
  BOOST_TEST(problems("name: n\nratio: 1\n", {"ratio.x=1"}) ==
             "--set ratio.x=1: ratio: is a single value, '1': nothing can be set inside it");
  BOOST_TEST(problems("name: n\n", {"inner"}) == "--set inner: has no '=': write --set key.path=value");
  BOOST_TEST(problems("name: n\n", {"a..b=1"}) ==
             "--set a..b=1: is not a key path such as deployment.decode.dep or pools[0].count");
  BOOST_TEST(problems("name: n\npools: []\n", {"pools[2].count=1"}) ==
             "--set pools[2].count=1: pools[2]: is past the end: the list has 0 elements");
  BOOST_TEST(problems("name: n\n", {"inner={count: "}).rfind("--set inner={count: : is not YAML", 0) == 0U);
}
