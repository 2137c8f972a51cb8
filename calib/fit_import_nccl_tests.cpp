// Output of nccl-tests as it prints it (all_reduce_perf and its sisters): rank lines name the GPUs, rows start with a size
// in bytes and give the out-of-place time in microseconds. The collective is what the output or the file's name says.
#include <fstream>
#include <sstream>

#include "calib/fit_import.hpp"
#include "sim/base/error.hpp"
#include "sim/base/input.hpp"

namespace rackcast::calib {

namespace {

struct Program {
  std::string_view name;    // of the nccl-tests program
  std::string_view family;
  double passes;            // a GPU's link carries passes x (R-1)/R of the printed size
};
constexpr Program programs[] = {{"all_reduce", "nccl_all_reduce", 2}, {"all_gather", "nccl_all_gather", 1},
                                {"reduce_scatter", "nccl_reduce_scatter", 1}, {"alltoall", "nccl_alltoall", 1}};

const Program* program_in(const std::string& text, const std::string& tail = "_perf") {
  for (const Program& p : programs)
    if (text.find(std::string(p.name) + tail) != std::string::npos) return &p;
  return nullptr;
}

// "#  Rank  0 Group  0 Pid  99 on node1 device  0 [0x19] NVIDIA H200"
std::string gpu_of_rank_line(const std::string& line) {
  const auto bracket = line.rfind(']');
  if (bracket == std::string::npos) return {};
  const auto name = line.find_first_not_of(' ', bracket + 1);
  return name == std::string::npos ? std::string() : gpu_name(line.substr(name));
}

}  // namespace

bool is_nccl_tests(const std::string& path) {
  check_input_path(path);
  std::ifstream in(path);
  std::string line;
  for (int i = 0; i < 200 && std::getline(in, line); ++i)
    if (line.find("nThread") != std::string::npos || line.find("# nccl-tests") != std::string::npos) return true;
  return false;
}

void import_nccl_tests(const std::string& path, Imported& out) {
  std::ifstream in(path);
  if (!in) throw UserError(path + ": cannot be read");
  const Program* program = program_in(path.substr(path.find_last_of('/') + 1), "");  // older releases do not print it
  std::string line, gpu;
  double ranks = 0;
  int number = 0;
  while (std::getline(in, line)) {
    ++number;
    if (const Program* named = program_in(line)) program = named;
    const auto first = line.find_first_not_of(" \t");
    if (first == std::string::npos) continue;
    if (line[first] == '#') {
      if (line.find(" Rank ") != std::string::npos) {
        ++ranks;
        gpu = gpu_of_rank_line(line);
      }
      continue;
    }
    std::istringstream cells(line);
    double bytes = 0, count = 0, time_us = 0;
    std::string type, operation, root;
    if (!(cells >> bytes >> count >> type >> operation >> root >> time_us)) {
      ++out.left_out["no row of sizes and times"];
      continue;
    }
    if (!program) throw UserError(path, number, 1, "", "neither the output nor the file's name says which collective this is (all_reduce_perf, all_gather_perf, reduce_scatter_perf, alltoall_perf)");
    if (gpu.empty() || ranks < 2 || bytes <= 0 || time_us <= 0) {
      ++out.left_out[gpu.empty() ? "GPU that we have no file for" : ranks < 2 ? "one GPU" : "empty message"];
      continue;
    }
    FitPoint p;
    p.gpu = gpu;
    p.family = std::string(program->family);
    p.ranks = ranks;
    p.link_bytes = program->passes * bytes * (ranks - 1) / ranks;
    p.time_s = time_us * 1e-6;
    p.shape = std::string(program->name) + " " + std::to_string(static_cast<long long>(bytes)) + " B";
    p.basis = Basis::measured;
    p.source = "nccl-tests, " + path.substr(path.find_last_of('/') + 1);
    out.points.push_back(std::move(p));
  }
  if (number == 0) throw UserError(path + ": is empty");
}

}  // namespace rackcast::calib
