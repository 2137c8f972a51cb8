// The header line of a run: which GPU, which driver and libraries.
#pragma once
#include <string>

#include "calib/gpu/nvml.hpp"
#include "calib/measurement.hpp"
#include "kernels/launcher.hpp"

namespace rackcast::calib {

std::string pci_bus_id(int device);
MeasurementHeader make_header(const kernels::GpuEnvironment& gpu, const Nvml& nvml, std::uint64_t seed);

}  // namespace rackcast::calib
