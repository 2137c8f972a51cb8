// Apart from measurement.cpp, so that rackcast-calib, which only writes, needs no zlib on a GPU node.
#include <zlib.h>

#include <array>

#include "calib/measurement.hpp"
#include "sim/base/error.hpp"

namespace rackcast::calib {

MeasurementFile read_measurements(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");  // reads plain files as they are
  if (!file) throw UserError("cannot read " + path);
  std::string text;
  std::array<char, 1 << 16> buffer;
  int got = 0;
  while ((got = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()))) > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
  gzclose(file);
  if (got < 0) throw UserError(path + " is not whole gzip data");
  return parse_measurements(text, path);
}

}  // namespace rackcast::calib
