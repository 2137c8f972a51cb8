// What lies between this rank's GPU and the others', established from NVML; nothing is assumed.
#pragma once
#include <string>
#include <vector>

namespace rackcast::calib {

// What a rank says about its GPU.
struct GpuPlace {
  std::string host;
  std::string pci;      // NVML's bus id
  std::string fabric;   // cluster and clique of the multi-node NVLink fabric (IMEX domain), empty where there is none
  std::string driver;
};
GpuPlace own_place(int device);
std::string to_text(const GpuPlace& place);
GpuPlace place_from(const std::string& text);

// nvlink: all on this host and NVML reports NVLink between every pair; mnnvl: several hosts, all in one fabric clique;
// pcie: one host, some pair without NVLink; network: several hosts; unknown: NVML does not say.
std::string transport_between(const std::vector<GpuPlace>& places, std::size_t mine);

// Why the places do not fit together for one run (different drivers, half in a fabric); empty when they do.
std::string place_problem(const std::vector<GpuPlace>& places);

}  // namespace rackcast::calib
