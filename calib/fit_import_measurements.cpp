// Our own measurement files: points of rackcast-calib whose check passed.
#include "calib/fit_import.hpp"
#include "calib/measurement.hpp"

namespace rackcast::calib {

void import_measurements(const std::string& path, Imported& out) {
  const MeasurementFile file = read_measurements(path);
  for (std::size_t i = 0; i < file.points.size(); ++i) {
    const Measurement& m = file.points[i];
    if (!m.ok || m.time_us.count == 0) {
      ++out.left_out["check failed"];
      continue;
    }
    ++out.left_out["family without a form: " + m.op];
  }
}

}  // namespace rackcast::calib
