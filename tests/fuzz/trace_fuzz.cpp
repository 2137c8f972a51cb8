// Load files of every format, plain and gzip (told apart by their first bytes), with small limits.
#include "sim/trace/read.hpp"
#include "sim/trace/statistics.hpp"
#include "tests/fuzz/target.hpp"

using namespace rackcast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refuse_or_read(data, size, [&](std::string_view text) {
    const fuzz::AsFile file(text, ".json");
    const Trace trace = read_trace({file.path()});
    statistics_of(trace);
  });
}
