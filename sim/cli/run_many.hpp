// Runs scenarios, each in a process of its own, and gives back their metrics in the order asked.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/base/catalog.hpp"

namespace rackcast {

struct RunRequest {
  std::string name;
  std::string yaml;
  std::vector<std::string> sets;
};

struct RunReply {
  nlohmann::ordered_json metrics;  // empty when error is not
  std::string error;               // first line of what went wrong
};

// jobs 0: one a core. Progress on stderr when it is a terminal.
std::vector<RunReply> run_many(const std::vector<RunRequest>& requests, const Catalog& catalog, int jobs, const std::string& what);

}  // namespace rackcast
