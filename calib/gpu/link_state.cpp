#include "calib/gpu/link_state.hpp"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <sstream>

#include "calib/gpu/header.hpp"
#include "kernels/dynamic_library.hpp"
#include "sim/base/error.hpp"

namespace rackcast::calib {

namespace {

// NVML's C interface as far as it is used; constants and layout from its public documentation.
using Device = struct nvmlDevice_st*;
constexpr int p2p_caps_nvlink = 2;  // NVML_P2P_CAPS_INDEX_NVLINK
constexpr int p2p_status_ok = 0;
constexpr unsigned char fabric_completed = 3;

struct FabricInfo {  // nvmlGpuFabricInfo_t
  unsigned char cluster[16];
  int status;
  unsigned int clique;
  unsigned char state;
};

class Library {
 public:
  Library() : library_({"libnvidia-ml.so.1"}, {"/usr/local/nvidia/lib64"}) {
    if (auto* init = library_.function_or_null<int()>("nvmlInit_v2")) ready_ = init() == 0;
  }
  Device device(const std::string& pci) const {
    Device found = nullptr;
    auto* by_bus = library_.function_or_null<int(const char*, Device*)>("nvmlDeviceGetHandleByPciBusId_v2");
    return ready_ && by_bus && by_bus(pci.c_str(), &found) == 0 ? found : nullptr;
  }
  std::string fabric(Device device) const {
    FabricInfo info{};
    auto* ask = library_.function_or_null<int(Device, FabricInfo*)>("nvmlDeviceGetGpuFabricInfo");
    if (!device || !ask || ask(device, &info) != 0 || info.state != fabric_completed || info.status != 0) return {};
    std::string text;
    bool any = false;
    for (const unsigned char byte : info.cluster) {
      std::array<char, 3> hex{};
      std::snprintf(hex.data(), hex.size(), "%02x", byte);
      text += hex.data();
      any = any || byte != 0;
    }
    return any ? text + ":" + std::to_string(info.clique) : std::string();
  }
  std::string driver() const {
    std::array<char, 96> text{};
    auto* ask = library_.function_or_null<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
    return ready_ && ask && ask(text.data(), static_cast<unsigned>(text.size())) == 0 ? text.data() : "";
  }
  // -1: NVML does not say.
  int nvlink_between(Device a, Device b) const {
    int status = 0;
    auto* ask = library_.function_or_null<int(Device, Device, int, int*)>("nvmlDeviceGetP2PStatus");
    if (!a || !b || !ask || ask(a, b, p2p_caps_nvlink, &status) != 0) return -1;
    return status == p2p_status_ok ? 1 : 0;
  }

 private:
  kernels::DynamicLibrary library_;
  bool ready_ = false;
};

}  // namespace

GpuPlace own_place(int device) {
  GpuPlace place;
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  place.host = host.data();
  place.pci = pci_bus_id(device);
  try {
    const Library nvml;
    place.fabric = nvml.fabric(nvml.device(place.pci));
    place.driver = nvml.driver();
  } catch (const Unavailable&) {
    // Without NVML the link stays unknown.
  }
  return place;
}

std::string to_text(const GpuPlace& place) {
  return place.host + "\n" + place.pci + "\n" + place.fabric + "\n" + place.driver + "\n";
}
GpuPlace place_from(const std::string& text) {
  std::istringstream in(text);
  GpuPlace place;
  std::getline(in, place.host);
  std::getline(in, place.pci);
  std::getline(in, place.fabric);
  std::getline(in, place.driver);
  return place;
}

std::string transport_between(const std::vector<GpuPlace>& places, std::size_t mine) {
  bool one_host = true;
  bool one_fabric = !places[mine].fabric.empty();
  for (const GpuPlace& place : places) {
    one_host = one_host && place.host == places[mine].host;
    one_fabric = one_fabric && place.fabric == places[mine].fabric;
  }
  if (!one_host) return one_fabric ? "mnnvl" : "network";
  try {
    const Library nvml;
    int least = 1;
    for (std::size_t other = 0; other < places.size(); ++other)
      if (other != mine) least = std::min(least, nvml.nvlink_between(nvml.device(places[mine].pci), nvml.device(places[other].pci)));
    return least == 1 ? "nvlink" : least == 0 ? "pcie" : "unknown";
  } catch (const Unavailable&) {
    return "unknown";
  }
}

std::string place_problem(const std::vector<GpuPlace>& places) {
  for (std::size_t r = 1; r < places.size(); ++r) {
    if (places[r].driver != places[0].driver)
      return "rank " + std::to_string(r) + " has driver " + places[r].driver + ", rank 0 has " + places[0].driver;
    if (places[r].fabric.empty() != places[0].fabric.empty())
      return "rank " + std::to_string(places[r].fabric.empty() ? r : 0) + " is not in an NVLink fabric clique, others are: check IMEX and the fabric manager";
    for (std::size_t s = 0; s < r; ++s)
      if (places[r].host == places[s].host && places[r].pci == places[s].pci)
        return "ranks " + std::to_string(s) + " and " + std::to_string(r) + " are on the same GPU: start one process a GPU";
  }
  return {};
}

}  // namespace rackcast::calib
