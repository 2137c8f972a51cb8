// Stands in for calib/gpu in a build without CUDA: listing works, running is not possible here.
#include "calib/gpu/runner.hpp"
#include "calib/gpu/world_runner.hpp"
#include "sim/base/error.hpp"

namespace rackcast::calib {

static const char* const reason = "this rackcast-calib was built without CUDA: build it where nvcc is (-DRACKCAST_CUDA=ON)";

RunOutcome run_points(const RunRequest&) { throw Unavailable(reason); }
bool run_bench(const RunRequest&, const std::vector<const kernels::Family*>&) { throw Unavailable(reason); }
RunOutcome run_world(const WorldRequest&) { throw Unavailable(reason); }
bool is_communication(const kernels::Family&) { return true; }

}  // namespace rackcast::calib
