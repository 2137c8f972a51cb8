#define BOOST_TEST_MODULE schema_doc
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "sim/base/schema_doc.hpp"

using namespace rackcast;

namespace {

enum class Color { red, green };
constexpr Choice colors[] = {{"red", "warm"}, {"green", "cool"}};

struct Leaf {
  Seconds wait{0.005};
};
void fields(Visitor& v, Leaf& x) { v.field("wait", x.wait, "how long").require(x.wait.value() > 0, "must be > 0 s"); }

struct Tree {
  std::string name;
  int size = 3;
  Color color = Color::green;
  Bytes tier{-1};
  std::vector<double> shares{0.5, 1};
  std::optional<Leaf> extra;
  std::vector<Leaf> list;
  std::map<std::string, Leaf> map;
  Leaf part;
};
void fields(Visitor& v, Tree& x) {
  v.field("name", x.name, "a name").required();
  v.field("size", x.size, "a | size").require(x.size > 0, "must be > 0");
  v.choice("color", x.color, colors, "a color");
  v.automatic("tier", x.tier, "bytes", "node");
  v.field("shares", x.shares, "shares");
  v.optional_group("extra", x.extra, "maybe");
  v.list("list", x.list, "some");
  v.map("map", x.map, "named");
  v.reference("part", x.part, "parts", "a file");
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_key_has_a_row_with_type_default_and_rule) {
  BOOST_TEST(to_markdown(document_of<Tree>()) ==
             "| key | type | default | meaning |\n|---|---|---|---|\n"
             "| `name` | text | required | a name |\n"
             "| `size` | whole number | `3` | a \\| size; must be > 0 |\n"
             "| `color` | choice | `green` | a color; `red`: warm; `green`: cool |\n"
             "| `tier` | quantity, as in '840 GiB per node', or auto | `auto` | bytes |\n"
             "| `shares` | list of numbers | `[0.5, 1]` | shares |\n"
             "| `extra` | mapping | absent | maybe |\n"
             "| `extra.wait` | quantity, as in '5 ms' | `5 ms` | how long; must be > 0 s |\n"
             "| `list` | list of mappings |  | some |\n"
             "| `list[].wait` | quantity, as in '5 ms' | `5 ms` | how long; must be > 0 s |\n"
             "| `map` | mapping from names |  | named |\n"
             "| `map.NAME.wait` | quantity, as in '5 ms' | `5 ms` | how long; must be > 0 s |\n"
             "| `part` | name of a file in parts/, or its keys |  | a file |\n");
}

BOOST_AUTO_TEST_CASE(the_json_schema_says_the_same) {
  const auto schema = nlohmann::json::parse(to_json_schema(document_of<Tree>(), "a tree"));
  BOOST_TEST(schema["title"] == "a tree");
  BOOST_TEST(schema["additionalProperties"] == false);
  BOOST_TEST(schema["else"]["required"].dump() == "[\"name\"]");  // a base may have it
  const auto& keys = schema["properties"];
  BOOST_TEST(keys["size"]["type"] == "integer");
  BOOST_TEST(keys["size"]["default"] == 3);
  BOOST_TEST(keys["color"]["enum"].dump() == "[\"red\",\"green\"]");
  BOOST_TEST(keys["list"]["items"]["properties"].contains("wait"));
  BOOST_TEST(keys["map"]["additionalProperties"]["properties"].contains("wait"));
  BOOST_TEST(keys["part"]["anyOf"][1]["properties"].contains("base"));
}
