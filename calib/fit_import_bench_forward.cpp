// Whole forwards of specified batches, as `vllm bench forward` times them: gpu, model (a file of ours), dep or tp, case (its
// grammar is that of `step`), latency_ms; `part` main (default: without draft and host) or total. What the operators do
// not explain becomes the model's layer composite: (time - operators) / layers = a0 + a1 rows.
#include <cmath>

#include "calib/fit_import.hpp"
#include "sim/base/error.hpp"
#include "sim/cost/step_case.hpp"

namespace rackcast::calib {

void import_bench_forward(const CsvTable& t, Imported& out) {
  for (std::size_t row = 0; row < t.rows(); ++row) {
    FitPoint p;
    p.gpu = gpu_name(t.text(row, "gpu"));
    if (p.gpu.empty()) {
      ++out.left_out["GPU that we have no file for"];
      continue;
    }
    const auto latency = t.number(row, "latency_ms");
    if (!latency || *latency <= 0) {
      ++out.left_out["no time given"];
      continue;
    }
    const auto refuse = [&](const char* column, const std::string& rule) { throw UserError(t.file(), t.line(row), 0, column, rule); };
    const double dep = t.has("dep") ? t.number(row, "dep").value_or(0) : 0, tp = t.has("tp") ? t.number(row, "tp").value_or(0) : 0;
    if ((dep > 0) == (tp > 0) || dep < 0 || tp < 0) refuse("dep", "give dep or tp, one of them > 0");
    if (dep + tp != std::floor(dep + tp) || dep + tp > 1024) refuse(dep > 0 ? "dep" : "tp", "must be a whole number of at most 1024");
    try {
      parse_case(t.text(row, "case"));
    } catch (const UserError& error) {
      refuse("case", error.problems().front().rule);
    }
    p.family = "composite";
    p.model = t.text(row, "model");
    out.models.emplace(p.model, std::pair(t.file(), t.line(row)));
    p.ranks = dep > 0 ? dep : -tp;  // negative: tensor parallel
    p.time_s = *latency * 1e-3;
    p.basis = Basis::measured;
    p.shape = "case " + t.text(row, "case");
    p.source = "bench forward, " + t.file().substr(t.file().find_last_of('/') + 1);
    out.points.push_back(std::move(p));
  }
}

}  // namespace rackcast::calib
