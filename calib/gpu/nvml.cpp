#include "calib/gpu/nvml.hpp"

#include <array>

#include "kernels/dynamic_library.hpp"
#include "sim/base/error.hpp"

namespace rackcast::calib {

// NVML's C interface, as far as it is used (nvml.h is not part of every toolkit installation).
using NvmlDevice = struct nvmlDevice_st*;
constexpr int nvml_clock_sm = 1, nvml_clock_memory = 2, nvml_temperature_gpu = 0;

struct Nvml::Api {
  kernels::DynamicLibrary library{{"libnvidia-ml.so.1"}, {"/usr/local/nvidia/lib64"}};
  NvmlDevice device = nullptr;

  template <typename... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    auto* function = library.function_or_null<int(Arguments...)>(name);
    return function && function(arguments...) == 0;
  }
  std::string text(const char* name) const {
    std::array<char, 96> buffer{};
    return call(name, device, buffer.data(), static_cast<unsigned>(buffer.size())) ? buffer.data() : "";
  }
};

Nvml::Nvml(const std::string& pci_bus_id) {
  try {
    auto api = std::make_unique<Api>();
    if (api->call("nvmlInit_v2") && api->call("nvmlDeviceGetHandleByPciBusId_v2", pci_bus_id.c_str(), &api->device)) api_ = std::move(api);
  } catch (const Unavailable&) {
    // No NVML here: clocks are recorded as absent.
  }
}
Nvml::~Nvml() = default;

std::optional<Clocks> Nvml::read() const {
  if (!api_) return std::nullopt;
  unsigned sm = 0, memory = 0, milliwatts = 0, temperature = 0;
  unsigned long long reasons = 0;
  Clocks clocks;
  if (api_->call("nvmlDeviceGetClockInfo", api_->device, nvml_clock_sm, &sm)) clocks.sm_mhz = static_cast<int>(sm);
  if (api_->call("nvmlDeviceGetClockInfo", api_->device, nvml_clock_memory, &memory)) clocks.memory_mhz = static_cast<int>(memory);
  if (api_->call("nvmlDeviceGetPowerUsage", api_->device, &milliwatts)) clocks.power_w = milliwatts / 1e3;
  if (api_->call("nvmlDeviceGetTemperature", api_->device, nvml_temperature_gpu, &temperature)) clocks.temperature_c = static_cast<int>(temperature);
  if (api_->call("nvmlDeviceGetCurrentClocksThrottleReasons", api_->device, &reasons)) clocks.throttle = reasons;
  return clocks;
}

int Nvml::best_sm_mhz() const {
  unsigned sm = 0;
  return api_ && api_->call("nvmlDeviceGetMaxClockInfo", api_->device, nvml_clock_sm, &sm) ? static_cast<int>(sm) : 0;
}

std::string Nvml::driver() const {
  std::array<char, 96> buffer{};
  return api_ && api_->call("nvmlSystemGetDriverVersion", buffer.data(), static_cast<unsigned>(buffer.size())) ? buffer.data() : "";
}
std::string Nvml::uuid() const { return api_ ? api_->text("nvmlDeviceGetUUID") : ""; }

bool Nvml::disturbs(std::uint64_t reasons) {
  constexpr std::uint64_t hardware_slowdown = 0x8, software_thermal = 0x20, hardware_thermal = 0x40, power_brake = 0x80;
  return reasons & (hardware_slowdown | software_thermal | hardware_thermal | power_brake);
}

}  // namespace rackcast::calib
