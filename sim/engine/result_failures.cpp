// What failures did to a run, as JSON.
#include "sim/engine/result.hpp"

namespace rackcast {

nlohmann::ordered_json failures_json(const BuiltRun& built, const SimulationOutcome& o) {
  using Json = nlohmann::ordered_json;
  const double window_s = o.window_end_s - o.window_start_s;
  Json events = Json::array();
  for (const FailureRecord& failure : o.failures) {
    if (!failure.happened) continue;
    std::size_t first = 0, pool = 0;
    while (failure.engine >= first + built.options.pools[pool].engines) first += built.options.pools[pool++].engines;
    const Goodput::Loss loss = o.goodput.loss(failure.at_s, window_s);
    Json event = {{"kind", failure_kinds[static_cast<std::size_t>(failure.kind)].name}, {"pool", built.pools[pool].name},
                  {"engine", failure.engine - first}, {"gpu", failure.gpu}, {"share", failure.share}, {"at_s", failure.at_s},
                  {"back_s", nullptr}, {"requests_hit", failure.held}, {"hand_overs_sent_again", failure.resent},
                  {"goodput_before_tok_s", loss.before_tok_s}, {"goodput_lowest_tok_s", loss.lowest_tok_s},
                  {"goodput_lost_tokens", loss.lost_tokens}, {"recovered_after_s", nullptr}};
    if (failure.back_s >= 0) event["back_s"] = failure.back_s;
    if (loss.recovered_s >= 0) event["recovered_after_s"] = loss.recovered_s;
    events.push_back(event);
  }
  return {{"events", events},
          {"requests", {{"arrived", o.arrivals_measured}, {"completed", o.finished_measured}, {"retried_and_completed", o.retried_measured},
                        {"lost", o.lost_measured}, {"unfinished", o.unfinished_measured}}}};
}

}  // namespace rackcast
