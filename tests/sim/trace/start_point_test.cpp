#define BOOST_TEST_MODULE start_point
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "sim/trace/start_point.hpp"

namespace {
constexpr std::uint32_t not_wrapped = 0xFFFF'FFFF;
struct Golden {
  std::uint64_t seed;
  std::string session;
  std::uint32_t lane;
  double low, high, share;
};
}  // namespace

// numpy 1.24: default_rng(int.from_bytes(hashlib.sha256(text).digest()[:8], "big")).uniform(low, high)
BOOST_AUTO_TEST_CASE(start_points_equal_numpys_to_the_last_bit) {
  const std::vector<Golden> goldens = {
      {42U, "trace_0001", not_wrapped, 0.25, 0.75, 0x1.26c72bdc550e7p-2},
      {42U, "trace_0003", not_wrapped, 0.25, 0.75, 0x1.0aab0b6d70ddep-1},
      {42U, "trace_0060", not_wrapped, 0.25, 0.75, 0x1.db1af2423b6c5p-2},
      {42U, "trace_0201", not_wrapped, 0.25, 0.75, 0x1.7657150186e91p-1},
      {42U, "trace_0590", not_wrapped, 0.25, 0.75, 0x1.a999fc72fb82fp-2},
      {42U, "trace_0709", not_wrapped, 0.25, 0.75, 0x1.4e18dc6c15367p-1},
      {42U, "002001296e8a", not_wrapped, 0.25, 0.75, 0x1.d21ad7bf02f20p-2},
      {42U, "", not_wrapped, 0.25, 0.75, 0x1.04951a4856e90p-1},
      {42U, "é session with spaces", not_wrapped, 0.25, 0.75, 0x1.b6459ab4f7f06p-2},
      {42U, "trace_0001", 393, 0.25, 0.75, 0x1.2bc853fadd0ddp-1},
      {42U, "trace_0001", 710, 0.25, 0.75, 0x1.04b5ede64490ep-1},
      {42U, "trace_0001", 3071, 0.25, 0.75, 0x1.67be831278a58p-1},
      {42U, "trace_0001", 49999, 0.25, 0.75, 0x1.3f4c9ff934970p-1},
      {0U, "trace_0003", not_wrapped, 0.0, 1.0, 0x1.9dde9ba2be4e7p-1},
      {1U, "trace_0003", not_wrapped, 0.0, 1.0, 0x1.8091ffb186ac0p-6},
      {7U, "trace_0003", not_wrapped, 0.0, 1.0, 0x1.0006338c4aba5p-1},
      {123456789U, "trace_0003", not_wrapped, 0.0, 1.0, 0x1.cdef5d651fa87p-1},
      {9223372036854775808U, "trace_0003", not_wrapped, 0.0, 1.0, 0x1.21e405c994682p-2},
      {7U, "trace_0590", 1000, 0.0, 1.0, 0x1.3818b2f9e205dp-1},
      {42U, std::string(200, 'x'), 5, 0.1, 0.9, 0x1.33564cce4540dp-3},
  };
  BOOST_TEST(goldens.size() == 20u);
  for (const Golden& golden : goldens) {
    const bool wrapped = golden.lane != not_wrapped;
    const double share = rackcast::start_share(golden.seed, golden.session, wrapped ? golden.lane : 17, wrapped, golden.low, golden.high);
    BOOST_TEST(share == golden.share);
  }
}
