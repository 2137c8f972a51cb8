// Whole forwards of specified batches, as `vllm bench forward` times them: gpu, model (a file of ours), dep or tp, case (its
// grammar is that of `step`), latency_ms; `part` main (default: without draft and host) or total. What the operators do
// not explain becomes the model's layer composite: (time - operators) / layers = a0 + a1 rows.
#include "calib/fit_import.hpp"
#include "sim/base/error.hpp"

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
    const double dep = t.has("dep") ? t.number(row, "dep").value_or(0) : 0, tp = t.has("tp") ? t.number(row, "tp").value_or(0) : 0;
    if ((dep > 0) == (tp > 0)) throw UserError(t.file(), t.line(row), 0, "dep", "give dep or tp, one of them > 0");
    p.family = "composite";
    p.model = t.text(row, "model");
    p.ranks = dep > 0 ? dep : -tp;  // negative: tensor parallel
    p.time_s = *latency * 1e-3;
    p.basis = Basis::measured;
    p.shape = "case " + t.text(row, "case");
    p.source = "bench forward, " + t.file().substr(t.file().find_last_of('/') + 1);
    out.points.push_back(std::move(p));
  }
}

}  // namespace rackcast::calib
