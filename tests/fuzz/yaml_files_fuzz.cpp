// Every kind of YAML file (scenario, sweep, plan, model, GPU, costs, ...): the first byte picks the kind.
#include "sim/cost/composite_fit.hpp"
#include "sim/cost/costs.hpp"
#include "sim/spec/plan.hpp"
#include "sim/spec/scenario.hpp"
#include "sim/spec/sweep.hpp"
#include "tests/fuzz/target.hpp"

using namespace rackcast;

template <class Struct>
static void read(std::string_view text, const Catalog& catalog) {
  const Struct once = read_yaml_as<Struct>({"fuzz.yaml", std::string(text)}, catalog.read_options());
  read_yaml_as<Struct>({"again.yaml", yaml_of(once)}, catalog.read_options());  // what it writes it reads
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Catalog catalog({RACKCAST_SOURCE_DIR "/scenarios"});
  return fuzz::refuse_or_read(data, size, [&](std::string_view text) {
    if (text.empty()) return;
    const std::string_view rest = text.substr(1);
    switch (static_cast<unsigned char>(text[0]) % 8) {
      case 0: read_scenario(YamlSource{"fuzz.yaml", std::string(rest)}, catalog, {}); break;
      case 1: { const SweepSpec sweep = read_yaml_as<SweepSpec>({"fuzz.yaml", std::string(rest)}, catalog.read_options()); Space(sweep.space, "fuzz.yaml", catalog, {}); break; }
      case 2: { const PlanSpec plan = read_yaml_as<PlanSpec>({"fuzz.yaml", std::string(rest)}, catalog.read_options()); Space(plan.space, "fuzz.yaml", catalog, {}); break; }
      case 3: read<CostSpec>(rest, catalog); break;
      case 4: read<ModelSpec>(rest, catalog); break;
      case 5: read<RackSpec>(rest, catalog); break;
      case 6: read<GpuSpec>(rest, catalog); break;
      default: read<PriceList>(rest, catalog);
    }
  });
}
