// What fields() functions say, for people and for editors: the key reference (Markdown) and a JSON schema.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "sim/base/schema.hpp"

namespace rackcast {

// One key. `children` of a list are those of one element, of a map those of one entry.
struct DocNode {
  enum class Kind { boolean, integer, tokens, number, text, quantity, choice, number_list, integer_list, text_list,
                    group, list, map };
  std::string key;
  Kind kind = Kind::group;
  std::string doc;
  std::string default_text;        // as YAML; empty for containers
  bool required = false;
  bool optional = false;           // a group that may be absent
  std::string reference;           // kind of files that may be named here
  std::vector<std::string> rules;
  std::vector<Choice> choices;
  Dimension dimension;
  std::string per;
  bool automatic = false;
  std::vector<DocNode> children;
};

DocNode document(const std::function<void(Visitor&)>& walk);
std::string to_markdown(const DocNode& root);                             // one table, a row a key
std::string to_json_schema(const DocNode& root, const std::string& title);  // draft-07

template <class Struct>
DocNode document_of() {
  return document([](Visitor& v) {
    Struct defaults{};
    fields(v, defaults);
  });
}

}  // namespace rackcast
