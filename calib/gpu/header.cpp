#include "calib/gpu/header.hpp"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>

#include "kernels/device.hpp"
#include "kernels/dynamic_library.hpp"
#include "sim/base/error.hpp"

namespace rackcast::calib {
namespace {

// Names a host or a GPU without telling which it is (FNV-1a).
std::string hashed(const std::string& text) {
  if (text.empty()) return "";
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  std::array<char, 17> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx", static_cast<unsigned long long>(hash));
  return hex.data();
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string cublaslt_version(const std::vector<std::string>& folders) {
  try {
    const kernels::DynamicLibrary library({"libcublasLt.so.13", "libcublasLt.so.12"}, folders);
    return std::to_string(library.function<std::size_t()>("cublasLtGetVersion")());
  } catch (const Unavailable&) {
    return "";
  }
}

std::string nccl_version(const std::vector<std::string>& folders) {
  try {
    const kernels::DynamicLibrary library({"libnccl.so.2"}, folders);
    int version = 0;
    return library.function<int(int*)>("ncclGetVersion")(&version) == 0 ? std::to_string(version) : "";
  } catch (const Unavailable&) {
    return "";
  }
}

}  // namespace

std::string pci_bus_id(int device) {
  std::array<char, 32> text{};
  RACKCAST_CUDA_CHECK(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device));
  return text.data();
}

MeasurementHeader make_header(const kernels::GpuEnvironment& gpu, const Nvml& nvml, std::uint64_t seed) {
  cudaDeviceProp properties;
  RACKCAST_CUDA_CHECK(cudaGetDeviceProperties(&properties, gpu.device));
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  int runtime = 0;
  RACKCAST_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  MeasurementHeader header;
  header.utc = utc_now();
  header.host_hash = hashed(host.data());
  header.uuid_hash = hashed(nvml.uuid());
  header.run_id = hashed(header.utc + header.host_hash + header.uuid_hash + std::to_string(getpid()));
  header.tool_version = RACKCAST_VERSION;
  header.git = RACKCAST_GIT;
  header.gpu = properties.name;
  header.compute_capability = std::to_string(gpu.cc_major) + '.' + std::to_string(gpu.cc_minor);
  header.sm_count = gpu.sm_count;
  header.l2_bytes = static_cast<std::int64_t>(gpu.l2_bytes);
  header.memory_bytes = static_cast<std::int64_t>(gpu.memory_bytes);
  header.driver = nvml.driver();
  header.cuda_runtime = std::to_string(runtime);
  header.cublaslt = cublaslt_version(gpu.library_folders);
  header.nccl = nccl_version(gpu.library_folders);
  header.compiler_arch = RACKCAST_CUDA_ARCHS;
  header.ranks = gpu.ranks;
  header.seed = seed;
  return header;
}

}  // namespace rackcast::calib
