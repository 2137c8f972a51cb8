#include "sim/cli/suite.hpp"

#include <algorithm>

namespace rackcast {

void fields(Visitor& v, StepFigure& f) {
  v.field("id", f.id, "short name of the figure").required();
  v.field("citation", f.citation, "who published it, when").required();
  v.field("model", f.model, "name under models/").required();
  v.field("gpu", f.gpu, "name under gpus/").required();
  v.field("dep", f.dep, "ranks of a DEP engine; 0: tp is given").require(f.dep >= 0, "must be >= 0");
  v.field("tp", f.tp, "ranks of a TP engine; 0: dep is given").require((f.dep > 0) != (f.tp > 0), "give dep or tp");
  v.field("case", f.case_text, "batch in the case grammar of step").required();
  v.field("part", f.part, "main, moe, rest (main without moe) or total")
      .require(f.part == "main" || f.part == "moe" || f.part == "rest" || f.part == "total", "must be main, moe, rest or total");
  v.field("published", f.published, "the published time").require(f.published > Seconds(0), "must be > 0");
  v.field("fitted", f.fitted, "a parameter was fitted on this figure");
}

void fields(Visitor& v, RunFigure& f) {
  v.field("id", f.id, "short name of the figure").required();
  v.field("citation", f.citation, "who published it, when").required();
  v.field("scenario", f.scenario, "name of a scenario file under scenarios/").required();
  v.field("sets", f.sets, "changes to it, as --set takes them");
  v.field("metric", f.metric, "metric of a run").required();
  v.field("published", f.published, "the published value, in the metric's unit; 0: none, predicted only").require(f.published >= 0, "must be >= 0");
  v.field("fitted", f.fitted, "a parameter was fitted on this figure");
}

void fields(Visitor& v, BoundFigure& b) {
  v.field("metric", b.metric, "metric of the items; empty: all");
  v.field("tags", b.tags, "only items that have these: gpu=, mode=, load=high (256 users and more), load=low, model=");
  v.field("median", b.median, "largest median error, as a fraction; 0: none").require(b.median >= 0, "must be >= 0");
  v.field("coverage", b.coverage, "smallest share of rows with a prediction; 0: none").require(b.coverage >= 0 && b.coverage <= 1, "must be 0 to 1");
  v.field("enforced", b.enforced, "missing it ends `validate` with exit code 1");
}

void fields(Visitor& v, TransferFigure& t) {
  v.field("from", t.from, "GPU whose fits are used").required();
  v.field("to", t.to, "GPU whose kernels are predicted").required();
}

void fields(Visitor& v, SuiteSpec& s) {
  v.field("name", s.name, "name of the suite").required();
  v.field("about", s.about, "what it checks, in one sentence");
  v.list("steps", s.steps, "published step times");
  v.list("runs", s.runs, "published figures of whole runs");
  v.field("table", s.table, "table of published results under RACKCAST_DATA");
  v.field("workload", s.workload, "rows of the table to take: fixed, agentx, or empty for both")
      .require(s.workload.empty() || s.workload == "fixed" || s.workload == "agentx", "must be fixed or agentx");
  v.field("models", s.models, "rows of the table to take: parts of the published model name");
  v.field("where", s.where, "rows of the table to take, as --where");
  v.field("fitted", s.fitted, "figures of the table, ID METRIC, that a parameter was fitted on");
  v.field("kernels", s.kernels, "tables of kernel times under RACKCAST_DATA");
  v.list("transfer", s.transfer, "kernels of one GPU from the fits of another; none: each GPU from its own cost file");
  v.list("bounds", s.bounds, "errors that the suite promises");
}

}  // namespace rackcast
