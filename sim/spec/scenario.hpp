// The root of a scenario file. A resolved scenario (every reference inline) is itself a scenario file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/catalog.hpp"
#include "sim/spec/deployment.hpp"
#include "sim/spec/failures.hpp"
#include "sim/spec/model.hpp"
#include "sim/spec/prices.hpp"
#include "sim/spec/rack.hpp"
#include "sim/spec/workload.hpp"

namespace rackcast {

struct Scenario {
  std::string name;
  RackSpec rack;
  ModelSpec model;
  DeploymentSpec deployment;
  WorkloadSpec workload;
  FailuresSpec failures;
  PricesSpec prices;
  NetworkKind network = NetworkKind::simgrid;
  Fidelity fidelity = Fidelity::collapsed;
  int uncertainty = 0;  // parameter sets drawn; 0 = central values only
  std::uint64_t seed = 42;
};
void fields(Visitor& v, Scenario& s);

// Reads, resolves and cross-checks (does it fit the rack? do the pools make sense?). Memory fit is cost/memory's.
// A scenario may say "base: NAME" (scenarios/NAME.yaml) or "base: ./other.yaml" and change some keys.
Scenario read_scenario(const YamlSource& source, const Catalog& catalog, const std::vector<std::string>& sets);
Scenario read_scenario(const std::string& path, const Catalog& catalog, const std::vector<std::string>& sets);

}  // namespace rackcast
