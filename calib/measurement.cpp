#include "calib/measurement.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/error.hpp"
#include "sim/base/output.hpp"

namespace rackcast::calib {
namespace {

using Json = nlohmann::ordered_json;

Json shape_json(const kernels::Shape& shape) {
  Json params = Json::object();
  for (const auto& value : shape.values()) {
    if (value.is_number) params[value.axis] = value.number;
    else params[value.axis] = value.text;
  }
  return params;
}

kernels::Shape shape_from(const Json& params) {
  kernels::Shape shape;
  for (const auto& [axis, value] : params.items()) {
    if (value.is_number_integer()) shape.set(axis, value.get<std::int64_t>());
    else shape.set(axis, value.get<std::string>());
  }
  return shape;
}

Measurement point_from(const Json& line) {
  Measurement m;
  m.op = line.at("op");
  m.implementation = line.at("impl");
  m.fallback_from = line.value("fallback_from", "");
  m.math = line.at("dtype");
  m.shape = shape_from(line.at("params"));
  const Json& derived = line.at("derived");
  m.work = {derived.at("flop"), derived.at("flop_padded"), derived.at("bytes_hbm"), derived.at("bytes_link"), derived.at("touched")};
  m.cache = line.at("cache");
  m.mode = line.at("mode");
  m.detail = line.value("detail", "");
  m.transport = line.value("transport", "none");
  m.launches = line.at("launches");
  m.sets = line.at("sets");
  m.pass = line.at("pass");
  const Json& time = line.at("t_us");
  m.time_us = {time.at("n"), time.at("med"), time.at("mad"), time.at("p10"), time.at("p90"), time.at("min")};
  if (line.contains("post_us")) {
    const Json& post = line.at("post_us");
    m.post_us = Summary{post.at("n"), post.at("med"), post.at("mad"), post.at("p10"), post.at("p90"), post.at("min")};
  }
  if (line.contains("clk") && !line.at("clk").is_null()) {
    const Json& clock = line.at("clk");
    m.clocks = Clocks{clock.at("sm_mhz"), clock.at("mem_mhz"), clock.at("power_w"), clock.at("temp_c"), clock.at("throttle")};
  }
  const Json& check = line.at("check");
  m.ok = check.at("ok");
  m.rel_l2 = check.at("rel_l2");
  m.max_abs = check.at("max_abs");
  m.note = check.value("note", "");
  m.basis = line.at("basis");
  return m;
}

MeasurementHeader header_from(const Json& line) {
  MeasurementHeader h;
  if (line.at("schema") != "calib/1") throw std::runtime_error("schema is not calib/1");
  h.run_id = line.at("run_id");
  h.utc = line.at("utc");
  h.tool_version = line.at("tool_version");
  h.git = line.value("git", "");
  h.host_hash = line.value("host_hash", "");
  const Json& gpu = line.at("gpu");
  h.gpu = gpu.at("name");
  h.compute_capability = gpu.at("cc");
  h.sm_count = gpu.at("sm");
  h.l2_bytes = gpu.at("l2_bytes");
  h.memory_bytes = gpu.at("mem_bytes");
  h.uuid_hash = gpu.value("uuid_hash", "");
  h.driver = line.value("driver", "");
  h.cuda_runtime = line.value("cuda_runtime", "");
  h.cublaslt = line.value("cublaslt", "");
  h.nccl = line.value("nccl", "");
  h.compiler_arch = line.value("compiler_arch", "");
  h.ranks = line.at("world").at("ranks");
  const Json& world = line.at("world");
  h.nodes = world.at("nodes");
  h.lsa_size = world.value("lsa_size", 1);
  h.transport = world.value("transport", "");
  h.window = world.value("window", "");
  h.launcher = world.value("launcher", "");
  if (line.contains("env")) h.nvls = line.at("env").value("NCCL_NVLS_ENABLE", "");
  h.seed = line.at("seed");
  return h;
}

}  // namespace

bool measures_nvlink(const Measurement& row) {
  return row.ok && row.time_us.count > 0 && (row.transport == "nvlink" || row.transport == "mnnvl");
}

std::string Measurement::key() const {
  return op + ' ' + shape.key() + ' ' + cache + ' ' + mode + " pass=" + std::to_string(pass);
}

std::string to_json_line(const MeasurementHeader& h) {
  Json world = {{"ranks", h.ranks}, {"nodes", h.nodes}};
  if (h.ranks > 1) world.update({{"lsa_size", h.lsa_size}, {"transport", h.transport}, {"window", h.window}, {"launcher", h.launcher}});
  const Json line = {
      {"schema", "calib/1"}, {"kind", "header"}, {"run_id", h.run_id}, {"utc", h.utc}, {"tool_version", h.tool_version},
      {"git", h.git}, {"host_hash", h.host_hash},
      {"gpu", {{"name", h.gpu}, {"cc", h.compute_capability}, {"sm", h.sm_count}, {"l2_bytes", h.l2_bytes}, {"mem_bytes", h.memory_bytes}, {"uuid_hash", h.uuid_hash}}},
      {"driver", h.driver}, {"cuda_runtime", h.cuda_runtime}, {"cublaslt", h.cublaslt}, {"nccl", h.nccl},
      {"compiler_arch", h.compiler_arch}, {"world", world}, {"env", {{"NCCL_NVLS_ENABLE", h.nvls}}}, {"seed", h.seed}};
  return line.dump();
}

std::string to_json_line(const Measurement& m) {
  Json line = {{"kind", "point"}, {"op", m.op}, {"impl", m.implementation}};
  if (!m.fallback_from.empty()) line["fallback_from"] = m.fallback_from;
  line["dtype"] = m.math;
  line["params"] = shape_json(m.shape);
  line["derived"] = {{"flop", m.work.flop}, {"flop_padded", m.work.flop_padded}, {"bytes_hbm", m.work.bytes_hbm},
                     {"bytes_link", m.work.bytes_link}, {"touched", m.work.touched}};
  line["cache"] = m.cache;
  line["mode"] = m.mode;
  if (!m.detail.empty()) line["detail"] = m.detail;
  line["launches"] = m.launches;
  line["sets"] = m.sets;
  line["pass"] = m.pass;
  line["t_us"] = {{"med", m.time_us.median}, {"mad", m.time_us.mad}, {"p10", m.time_us.p10}, {"p90", m.time_us.p90},
                  {"min", m.time_us.min}, {"n", m.time_us.count}};
  if (m.post_us)
    line["post_us"] = {{"med", m.post_us->median}, {"mad", m.post_us->mad}, {"p10", m.post_us->p10}, {"p90", m.post_us->p90},
                       {"min", m.post_us->min}, {"n", m.post_us->count}};
  if (m.clocks)
    line["clk"] = {{"sm_mhz", m.clocks->sm_mhz}, {"mem_mhz", m.clocks->memory_mhz}, {"power_w", m.clocks->power_w},
                   {"temp_c", m.clocks->temperature_c}, {"throttle", m.clocks->throttle}};
  else
    line["clk"] = nullptr;
  line["check"] = {{"ok", m.ok}, {"rel_l2", m.rel_l2}, {"max_abs", m.max_abs}, {"ref", "fp64"}};
  if (!m.note.empty()) line["check"]["note"] = m.note;
  line["transport"] = m.transport;
  line["basis"] = m.basis;
  return line.dump();
}

MeasurementFile parse_measurements(const std::string& text, const std::string& path) {
  MeasurementFile file;
  std::size_t start = 0;
  for (int number = 1; start < text.size(); ++number) {
    const std::size_t end = text.find('\n', start);
    if (end == std::string::npos) break;  // a killed run cut its last line
    const std::string line = text.substr(start, end - start);
    start = end + 1;
    if (line.empty()) continue;
    try {
      const Json json = Json::parse(line);
      const std::string kind = json.at("kind");
      if (kind == "header") {
        file.headers.push_back(header_from(json));
      } else if (kind == "point") {
        if (file.headers.empty()) throw std::runtime_error("a point before any header");
        file.points.push_back(point_from(json));
        file.header_of_point.push_back(static_cast<int>(file.headers.size()) - 1);
      } else {
        throw std::runtime_error("kind '" + kind + "' is neither header nor point");
      }
    } catch (const std::exception& error) {
      throw UserError(path, number, 1, "", std::string("not a measurement line: ") + error.what());
    }
  }
  return file;
}

MeasurementWriter::MeasurementWriter(const std::string& path) : path_(path) {
  check_output_path(path);
  std::ifstream existing(path, std::ios::binary);
  std::stringstream buffer;
  buffer << existing.rdbuf();
  const std::string text = buffer.str();
  for (const Measurement& point : parse_measurements(text, path).points) keys_.insert(point.key());
  descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw UserError("cannot write " + path + ": choose another --out");
  const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  if (ftruncate(descriptor_, static_cast<off_t>(whole)) != 0 || lseek(descriptor_, 0, SEEK_END) < 0)
    throw UserError("cannot repair the end of " + path);
}

MeasurementWriter::~MeasurementWriter() {
  if (descriptor_ >= 0) close(descriptor_);
}

void MeasurementWriter::write_line(const std::string& line) {
  const std::string whole = line + '\n';
  std::size_t done = 0;
  while (done < whole.size()) {
    const ssize_t wrote = write(descriptor_, whole.data() + done, whole.size() - done);
    if (wrote <= 0) throw UserError("cannot write " + path_ + " (disk full?)");
    done += static_cast<std::size_t>(wrote);
  }
  fsync(descriptor_);
}

void MeasurementWriter::append(const MeasurementHeader& header) { write_line(to_json_line(header)); }

void MeasurementWriter::append(const Measurement& point) {
  write_line(to_json_line(point));
  keys_.insert(point.key());
}

}  // namespace rackcast::calib
