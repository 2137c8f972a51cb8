// Published deployments: which workers, request limits and speculation a benchmark ran at a concurrency. They fill what a
// row of results leaves out, from its deployment columns only, never from its measured figures.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analysis/published_rows.hpp"
#include "sim/base/csv.hpp"

namespace rackcast {

struct Recipe {
  std::string name;         // "recipe FILE:LINE" or "published row ID", for the note
  std::string model_key;    // dsr1, dsv4, kimik2...
  std::string gpu, framework, precision;
  int input_tokens = 0, output_tokens = 0;
  bool agentx = false;
  PublishedEngines prefill, decode;  // aggregated recipes: prefill.workers 0
  int draft_tokens = 0;
  std::optional<bool> experts_balanced;  // does it move experts to even their load; nullopt: its file's name does not say
  std::vector<int> concurrencies;
  int total_gpus() const { return prefill.workers * prefill.gpus_each + decode.workers * decode.gpus_each; }
};

// A recipe table. `batchN` in a recipe file's name is the running requests of a decode rank, `mtpN` the draft depth, `eplbN`
// the expert slots of a balanced placement (0: none).
std::vector<Recipe> read_recipes(const CsvTable& table);

// Rows that say their whole deployment are as good as recipes for their neighbours.
std::vector<Recipe> recipes_of(const std::vector<PublishedRow>& rows);

// "1xDEP2+3xTP8/EP8", "agg 1xTP8": prefill first. False when the text says something else.
bool parse_topology(const std::string& text, PublishedEngines& prefill, PublishedEngines& decode);

// Fills unknown workers, attention kind, request limit and speculation of a row, from the closest recipe of the same
// model, GPU, framework, precision and shape. In order: same lengths and concurrency; same concurrency, other lengths;
// same lengths, nearest concurrency. Among equals: the first, without speculation before with. Rows that do not say how deep
// they draft take the depth of the recipe of their lengths and concurrency. Prefill workers come from
// recipes of the row's lengths within half and twice its concurrency only and stay 0 (unknown) otherwise.
// Nothing fits: one decode engine, no speculation. Returns a sentence about what was filled and from where.
std::string complete_row(PublishedRow& row, const std::vector<Recipe>& recipes);

// Rows of one configuration number and lengths were one launch, made for the largest of their concurrencies.
void share_launches(std::vector<PublishedRow>& rows);

// Rows of one deployment and concurrency that ran with and without speculation: where one of them is known to be without,
// the others are with.
void settle_speculation(std::vector<PublishedRow>& rows, const std::vector<Recipe>& recipes);

}  // namespace rackcast
