// static: placed once, from a profile of the load or from a table file, and never again. With profile_error the profile
// is off by a log-normal factor per expert: a table that was measured on another data set.
#include <cmath>
#include <random>

#include "sim/base/error.hpp"
#include "sim/policy/eplb_policy.hpp"

namespace rackcast {

void fields(Visitor& v, EplbStaticOptions& o) {
  v.field("profile_error", o.profile_error, "log-deviation between the profile and the load of the day")
      .require(o.profile_error >= 0 && o.profile_error <= 3, "must be 0 to 3");
  v.field("table", o.table, "placement table of `rackcast eplb --out`; empty: placed from the profile");
}

namespace {

class Static final : public EplbPlanner {
 public:
  Static(const EplbShape& shape, const EplbStaticOptions& options, std::vector<ExpertPlacement> table)
      : EplbPlanner(shape), options_(options), table_(std::move(table)) {}

  ExpertPlacement initial(int layer, std::span<const double> profile) const override {
    if (!table_.empty()) {
      if (static_cast<std::size_t>(layer) >= table_.size())
        throw UserError("the placement table has " + std::to_string(table_.size()) + " layers, but the model has more");
      return table_[static_cast<std::size_t>(layer)];
    }
    std::vector<double> seen(profile.begin(), profile.end());
    std::mt19937_64 random(static_cast<std::uint64_t>(layer) + 1);
    std::normal_distribution<double> normal;
    if (options_.profile_error > 0)
      for (double& load : seen) load *= std::exp(options_.profile_error * normal(random));
    return balanced(seen);
  }

 private:
  EplbStaticOptions options_;
  std::vector<ExpertPlacement> table_;
};

}  // namespace

std::unique_ptr<EplbPlanner> make_eplb_static(const EplbShape& shape, const EplbStaticOptions& options, std::vector<ExpertPlacement> table) {
  return std::make_unique<Static>(shape, options, std::move(table));
}

}  // namespace rackcast
