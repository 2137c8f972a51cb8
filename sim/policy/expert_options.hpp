// What a scenario says about the popularity of experts and about the choice of replicas. Light: every scenario holds it.
#pragma once
#include <string>
#include <vector>

#include "sim/base/schema.hpp"

namespace rackcast {

enum class ReplicaChoice { round_robin, load_aware };
extern const std::vector<Choice> replica_choices;

enum class ExpertSkew { balanced, zipf, dirichlet, power_law, counts };
extern const std::vector<Choice> expert_skews;

struct ExpertPopularityOptions {
  ExpertSkew skew = ExpertSkew::balanced;
  double exponent = 1.0;        // zipf: p ~ rank^-exponent; power_law: density ~ x^-exponent on [1, span]
  double alpha = 1.0;           // dirichlet: concentration; small = skewed
  double span = 6554;           // power_law: largest over smallest weight (0.8 x 8,192 tokens, as published tables draw it)
  int topics = 4;
  double topic_spread = 0.3;    // log-deviation of an expert's popularity between topics
  double drift = 0.1;           // log-deviation of the walk in time; 0 = none
  double drift_time_s = 600;    // time constant of the walk
  std::vector<std::vector<double>> counts = {};  // skew == counts: recorded tokens [layer][expert]
};

// As a scenario says it. Files are read by sim/spec.
struct ExpertLoadSpec {
  ExpertPopularityOptions popularity{};
  std::string counts_file, draft_counts_file;
  bool uneven() const { return popularity.skew != ExpertSkew::balanced; }
};
void fields(Visitor& v, ExpertLoadSpec& e);

}  // namespace rackcast
