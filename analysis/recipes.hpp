// Published deployment recipes: which worker counts and which speculation a benchmark ran at a concurrency. They fill
// what a row of results leaves out, from its deployment columns only, never from its measured figures.
#pragma once
#include <string>
#include <vector>

#include "analysis/published_rows.hpp"
#include "sim/base/csv.hpp"

namespace rackcast {

struct Recipe {
  std::string name;         // file and line, for the note
  std::string model_key;    // dsr1, dsv4, kimik2...
  std::string gpu, framework, precision;
  int input_tokens = 0, output_tokens = 0;
  bool agentx = false;
  PublishedEngines prefill, decode;  // aggregated recipes: prefill.workers 0
  int draft_tokens = 0;
  std::vector<int> concurrencies;
};

std::vector<Recipe> read_recipes(const CsvTable& table);

// "1xDEP2+3xTP8/EP8", "agg 1xTP8": prefill first. False when the text says something else.
bool parse_topology(const std::string& text, PublishedEngines& prefill, PublishedEngines& decode);

// Fills unknown workers, attention kind and speculation of a row. Rules in order: the row says it; a recipe with the same
// system, lengths, shape and concurrency (several that fit: the first without speculation); another published row of the
// same system, shape and concurrency; else one decode engine and the number of prefill engines stays 0 (unknown).
// Returns a sentence about what was filled and from where.
std::string complete_row(PublishedRow& row, const std::vector<Recipe>& recipes, const std::vector<PublishedRow>& others);

}  // namespace rackcast
