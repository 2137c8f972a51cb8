// Our own measurement files: points of rackcast-calib whose check passed. Costs of the link between GPUs come only from
// rows that crossed NVLink; virtual ranks and copies within one GPU (loopback) are left out by that name.
#include "calib/fit_import.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "calib/fit_work.hpp"
#include "calib/measurement.hpp"

namespace rackcast::calib {

namespace {

// Why the row is left out, empty when it became a point.
std::string all_to_all(const Measurement& m, FitPoint& p) {
  if (m.shape.text("path") != "lsa") return "all_to_all: a baseline, engines use the one-sided path";
  if (m.shape.number("ctas") != 0) return "all_to_all: fewer blocks than the GPU runs";
  const std::string& part = m.shape.text("part");
  if (part != "dispatch" && part != "combine") return "all_to_all: a round trip is the sum of its parts";
  p.family = "a2a_" + part;
  p.form = "unique";
  p.ranks = static_cast<double>(m.shape.number("ranks"));
  return {};
}
std::string collectives(const Measurement& m, FitPoint& p) {
  p.family = "nccl_" + (m.shape.text("collective") == "all_to_all" ? std::string("alltoall") : m.shape.text("collective"));
  p.ranks = static_cast<double>(m.shape.number("ranks"));
  return {};
}
std::string kv_push(const Measurement& m, FitPoint& p) {
  // What a transfer library does: it posts a list of descriptors to the copy engines.
  if (m.shape.text("path") != "batch" || m.shape.text("direction") != "push") return "kv_push: another path than batched descriptors pushed";
  p.family = "kv_transfer";
  p.units = static_cast<double>(m.shape.number("blocks"));
  return {};
}

std::string dense(const Measurement& m, FitPoint& p) {
  if (m.cache != "cold") return "warm caches";
  if (m.math != "bf16" && m.math != "fp8_block") return "dense math without a family: " + m.math;
  if (m.shape.number("batch") != 1) return "dense in batches";
  p.family = m.math == "bf16" ? "dense_bf16" : "dense_fp8";
  gemm_work(p, static_cast<double>(m.shape.number("m")), static_cast<double>(m.shape.number("n")), static_cast<double>(m.shape.number("k")),
            m.math == "bf16" ? WeightType::bf16 : WeightType::fp8);
  return {};
}
std::string experts(const Measurement& m, FitPoint& p) {
  if (m.cache != "cold") return "warm caches";
  if (m.shape.text("part") != "both" || m.shape.text("weights") != "fp8" || m.shape.text("spread") != "equal")
    return "expert GEMMs in part, skewed or of other weights";
  p.family = "moe_fp8";  // without permutation: row_ns keeps its prior
  p.flops = m.work.flop;
  p.bytes = m.work.bytes_hbm;
  return {};
}

enum AxisKind { number, word };
struct Axis {
  std::string_view name;
  AxisKind kind = number;
};
struct Reader {
  std::string_view op;
  std::string (*read)(const Measurement& m, FitPoint& p);
  bool over_link;
  std::array<Axis, 4> needs;  // axes of a shape that it asks for; unused ones last
};
constexpr Reader readers[] = {{"all_to_all", all_to_all, true, {{{"path", word}, {"ctas", number}, {"part", word}, {"ranks", number}}}},
                              {"collectives", collectives, true, {{{"collective", word}, {"ranks", number}}}},
                              {"kv_push", kv_push, true, {{{"path", word}, {"direction", word}, {"blocks", number}}}},
                              {"dense", dense, false, {{{"m", number}, {"n", number}, {"k", number}, {"batch", number}}}},
                              {"moe_gemm", experts, false, {{{"part", word}, {"weights", word}, {"spread", word}}}}};

// Files of others, and changed ones, may lack an axis or spell a number as a word.
bool has(const kernels::Shape& shape, const Axis& axis) {
  return std::any_of(shape.values().begin(), shape.values().end(),
                     [&](const kernels::Shape::Value& value) { return value.axis == axis.name && value.is_number == (axis.kind == number); });
}

std::string point_of(const Measurement& m, FitPoint& p) {
  for (const Reader& reader : readers) {
    if (reader.op != m.op) continue;
    for (const Axis& axis : reader.needs)
      if (!axis.name.empty() && !has(m.shape, axis)) return m.op + ": a shape without " + std::string(axis.name);
    if (reader.over_link && !measures_nvlink(m)) return m.op + ": transport is " + m.transport + ", not NVLink";
    return reader.read(m, p);
  }
  return "family without a form: " + m.op;
}

}  // namespace

void import_measurements(const std::string& path, Imported& out) {
  const MeasurementFile file = read_measurements(path);
  for (std::size_t i = 0; i < file.points.size(); ++i) {
    const Measurement& m = file.points[i];
    if (!m.ok || m.time_us.count == 0) {
      ++out.left_out["check failed"];
      continue;
    }
    if (m.mode == "sustained") {
      ++out.left_out["under the power cap"];
      continue;
    }
    const MeasurementHeader& header = file.headers[static_cast<std::size_t>(file.header_of_point[i])];
    FitPoint p;
    p.gpu = gpu_name(header.gpu);
    p.shape = m.shape.key();
    p.source = "rackcast-calib run " + header.run_id;
    p.basis = Basis::measured;
    p.time_s = m.time_us.median * 1e-6;
    p.flops = m.work.flop;
    p.bytes = m.work.bytes_hbm;
    p.link_bytes = m.work.bytes_link;
    const std::string reason = point_of(m, p);
    if (reason.empty()) out.points.push_back(std::move(p));
    else ++out.left_out[reason];
  }
}

}  // namespace rackcast::calib
