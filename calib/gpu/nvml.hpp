// Clocks, power, temperature and throttle reasons through NVML, loaded at run time. Absent library: read() is empty.
// Never changes a setting.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "calib/measurement.hpp"

namespace rackcast::calib {

class Nvml {
 public:
  explicit Nvml(const std::string& pci_bus_id);  // of the CUDA device
  ~Nvml();
  std::optional<Clocks> read() const;
  int best_sm_mhz() const;  // the highest that the GPU has; 0 when unknown
  std::string driver() const;  // empty when unknown
  std::string uuid() const;

  // Reasons that make a sample worthless (hardware slowdown, thermal); power cap and idle are normal.
  static bool disturbs(std::uint64_t throttle_reasons);

 private:
  struct Api;
  std::unique_ptr<Api> api_;
};

}  // namespace rackcast::calib
