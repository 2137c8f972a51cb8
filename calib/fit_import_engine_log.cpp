// Steps of a live engine without overlapped scheduling: what the wall clock holds beyond the GPU's time is the host's.
#include "calib/fit_import.hpp"
#include "sim/base/error.hpp"

namespace rackcast::calib {

void import_engine_log(const CsvTable& t, Imported& out) {
  for (std::size_t row = 0; row < t.rows(); ++row) {
    const auto gpu_us = t.number(row, "gpu_us"), wall_us = t.number(row, "wall_us"), requests = t.number(row, "requests");
    FitPoint p;
    p.gpu = gpu_name(t.text(row, "gpu"));
    if (p.gpu.empty() || !gpu_us || !wall_us || !requests) {
      ++out.left_out[p.gpu.empty() ? "GPU that we have no file for" : "a number is missing"];
      continue;
    }
    if (*requests < 0) throw UserError(t.file(), t.line(row), 0, "requests", "must be >= 0");
    if (*gpu_us <= 0) throw UserError(t.file(), t.line(row), 0, "gpu_us", "must be > 0");
    if (*wall_us <= 0) throw UserError(t.file(), t.line(row), 0, "wall_us", "must be > 0");
    if (*wall_us <= *gpu_us) {
      ++out.left_out[std::string(hidden_host_time)];
      continue;
    }
    p.family = "host";
    p.units = *requests;
    p.time_s = (*wall_us - *gpu_us) * 1e-6;
    p.basis = Basis::measured;
    p.source = t.file();
    out.points.push_back(p);
  }
}

}  // namespace rackcast::calib
