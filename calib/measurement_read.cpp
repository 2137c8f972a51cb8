// Apart from measurement.cpp, so that rackcast-calib, which only writes, needs no zlib on a GPU node.
#include <zlib.h>

#include <array>

#include "calib/measurement.hpp"
#include "sim/base/error.hpp"
#include "sim/base/input.hpp"

namespace rackcast::calib {

MeasurementFile read_measurements(const std::string& path) {
  constexpr std::size_t most_bytes = std::size_t{256} << 20;  // a full grid is some 20 MiB
  check_input_path(path);
  gzFile file = gzopen(path.c_str(), "rb");  // reads plain files as they are
  if (!file) throw UserError("cannot read " + path);
  std::string text;
  std::array<char, 1 << 16> buffer;
  int got = 0;
  while (text.size() <= most_bytes && (got = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()))) > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
  gzclose(file);
  if (text.size() > most_bytes) throw UserError(path + " holds more than 256 MiB of text");
  if (got < 0) throw UserError(path + " is not whole gzip data");
  return parse_measurements(text, path);
}

}  // namespace rackcast::calib
