// Tables of expert dispatch and combine, as DeepEP's and CollectiveX's benchmarks print them, one row a point: gpu, part
// (dispatch or combine), ranks, tokens (of a rank), hidden, topk, experts, bytes_per_value, latency_us; `mode` is unique
// (a token once to each rank that needs it: DeepEP normal, HybridEP, one-sided) or copies (once per expert: low latency).
#include <fmt/core.h>

#include <cmath>

#include "calib/fit_import.hpp"
#include "calib/fit_work.hpp"
#include "sim/base/error.hpp"

namespace rackcast::calib {

void import_exchange_table(const CsvTable& t, Imported& out) {
  for (std::size_t row = 0; row < t.rows(); ++row) {
    const std::string gpu = gpu_name(t.text(row, "gpu")), &part = t.text(row, "part"), &mode = t.text(row, "mode");
    if (gpu.empty()) {
      ++out.left_out["GPU that we have no file for"];
      continue;
    }
    if (part != "dispatch" && part != "combine") throw UserError(t.file(), t.line(row), 0, "part", "'" + part + "' is not dispatch or combine");
    if (mode != "unique" && mode != "copies") throw UserError(t.file(), t.line(row), 0, "mode", "'" + mode + "' is not unique or copies");
    const auto number = [&](const char* column) {
      const auto value = t.number(row, column);
      if (!value || *value <= 0) throw UserError(t.file(), t.line(row), 0, column, "must be a number > 0");
      return *value;
    };
    const auto whole = [&](const char* column, double most) {
      const double value = number(column);
      if (value != std::floor(value) || value > most) throw UserError(t.file(), t.line(row), 0, column, fmt::format("must be a whole number of at most {:g}", most));
      return value;
    };
    const double experts = whole("experts", 65536), ranks = whole("ranks", experts);
    if (ranks < 2) throw UserError(t.file(), t.line(row), 0, "ranks", "must be at least 2: one rank exchanges nothing");
    FitPoint p;
    p.gpu = gpu;
    // A cost file keeps one all-to-all; DeepEP's copies have a family of their own where engines use one-sided kernels.
    const bool beside = mode == "copies" && (gpu == "gb200" || gpu == "gb300");
    p.family = (beside ? "deepep_" : "a2a_") + part;
    p.form = mode;
    p.time_s = number("latency_us") * 1e-6;
    p.basis = Basis::published;
    p.source = t.has("source") && !t.text(row, "source").empty() ? t.text(row, "source") : t.file();
    p.shape = part + ", " + t.text(row, "tokens") + " tokens over " + t.text(row, "ranks") + " ranks";
    exchange_work(p, {number("hidden"), 0, experts, whole("topk", experts)}, number("tokens"), ranks,
                  number("hidden") * number("bytes_per_value"), mode == "unique");
    out.points.push_back(std::move(p));
  }
}

}  // namespace rackcast::calib
