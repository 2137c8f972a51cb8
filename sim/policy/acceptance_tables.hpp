// Published acceptance lengths by number of draft tokens. Benchmarks force them ("golden" lengths), so that results with
// different drafts can be compared. Lengths count the token that a step gives anyway.
#pragma once
#include <span>
#include <string_view>
#include <vector>

namespace rackcast {

struct AcceptanceTable {
  std::string_view name, meaning;
  std::vector<double> lengths;        // [k-1]: with k draft tokens; 0: not published
};

std::span<const AcceptanceTable> acceptance_tables();

// Acceptance of every position given that all before were kept, for `draft_tokens`. What a position adds to the length is
// the difference of neighbouring lengths, as far as they are published and fall; then scaled so that the sum is the length
// of this very number of draft tokens. Empty when the table has no length for it.
std::vector<double> acceptance_of(const AcceptanceTable& table, int draft_tokens);

}  // namespace rackcast
