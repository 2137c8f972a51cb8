// Measurement files of rackcast-calib, as the fitter takes them.
#include "calib/fit_import.hpp"
#include "tests/fuzz/target.hpp"

using namespace rackcast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refuse_or_read(data, size, [&](std::string_view text) {
    const fuzz::AsFile file(text, ".jsonl");
    calib::import_points(file.path());
  });
}
