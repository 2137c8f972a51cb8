// JSON schema (draft-07) from the documentation tree; editors complete and check YAML with it.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/schema_doc.hpp"
#include "sim/base/units_text.hpp"

namespace rackcast {

namespace {

using Json = nlohmann::ordered_json;
using Kind = DocNode::Kind;

// What a file may leave out because its base has it is not required: `partial`.
Json mapping(const DocNode& node, bool partial);

Json base_key() { return {{"type", "string"}, {"description", "name of a file whose keys hold where none is given here"}}; }

Json list_of(const Json& type) { return {{"type", "array"}, {"items", {{"type", type}}}}; }

Json type_of(const DocNode& node, bool partial) {
  switch (node.kind) {
    case Kind::boolean: return {{"type", "boolean"}};
    case Kind::integer: return {{"type", "integer"}};
    case Kind::tokens: return {{"type", {"integer", "string"}}, {"pattern", "^-?[0-9]+ *[KM]?$"}};
    case Kind::number: return {{"type", "number"}};
    case Kind::text: return {{"type", "string"}};
    case Kind::quantity: return {{"anyOf", {{{"type", "string"}}, {{"const", 0}}}}};
    case Kind::choice: {
      Json names = Json::array();
      for (const Choice& choice : node.choices) names.push_back(std::string(choice.name));
      return {{"enum", names}};
    }
    case Kind::number_list: return list_of("number");
    case Kind::integer_list: return list_of("integer");
    case Kind::text_list: return list_of({"string", "number", "boolean"});  // texts may look like numbers
    case Kind::group: {
      Json inner = mapping(node, partial || !node.reference.empty());
      if (node.reference.empty()) return inner;
      inner["properties"]["base"] = base_key();
      return {{"anyOf", {{{"type", "string"}}, inner}}};
    }
    case Kind::list: return {{"type", "array"}, {"items", mapping(node, false)}};
    case Kind::map: return {{"type", "object"}, {"additionalProperties", mapping(node, partial)}};
  }
  return {};
}

Json mapping(const DocNode& node, bool partial) {
  Json properties = Json::object(), required = Json::array();
  for (const DocNode& child : node.children) {
    Json type = type_of(child, partial);
    std::string text = child.doc;
    for (const std::string& rule : child.rules) text += "; " + rule;
    type["description"] = text;
    if (child.kind == Kind::quantity) type["examples"] = {unit_example(child.dimension)};
    if (!child.default_text.empty() && child.kind != Kind::number_list && child.kind != Kind::integer_list && child.kind != Kind::text_list)
      type["default"] = child.kind == Kind::text || child.kind == Kind::quantity || child.kind == Kind::choice || child.kind == Kind::tokens
                            ? Json(child.default_text)
                            : Json::parse(child.default_text);
    properties[child.key] = std::move(type);
    if (child.required && !partial) required.push_back(child.key);
  }
  Json object = {{"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
  if (!required.empty()) object["required"] = required;
  return object;
}

}  // namespace

std::string to_json_schema(const DocNode& root, const std::string& title) {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
  const bool has_own_base = std::ranges::find(root.children, "base", &DocNode::key) != root.children.end();
  schema.update(mapping(root, !has_own_base));
  if (!has_own_base) {
    schema["properties"]["base"] = base_key();
    Json required = Json::array();
    for (const DocNode& child : root.children)
      if (child.required) required.push_back(child.key);
    if (!required.empty()) schema.update({{"if", {{"required", {"base"}}}}, {"then", true}, {"else", {{"required", required}}}});
  }
  return schema.dump(2) + "\n";
}

}  // namespace rackcast
