#define BOOST_TEST_MODULE communication_families
#include <boost/test/unit_test.hpp>
#include <set>

#include "calib/measurement.hpp"
#include "kernels/all_to_all.hpp"
#include "kernels/all_to_all_routing.hpp"
#include "kernels/collectives.hpp"
#include "kernels/expert_move.hpp"
#include "kernels/kv_push.hpp"

using namespace rackcast;
using namespace rackcast::kernels;

BOOST_AUTO_TEST_CASE(bus_factors_are_those_of_nccl_tests) {
  BOOST_TEST(bus_factor("all_reduce", 8) == 2 * 7.0 / 8);
  BOOST_TEST(bus_factor("all_gather", 8) == 7.0 / 8);
  BOOST_TEST(bus_factor("reduce_scatter", 72) == 71.0 / 72);
  BOOST_TEST(bus_factor("all_to_all", 2) == 0.5);
  Shape shape;
  shape.set("collective", "all_reduce").set("ranks", 4).set("bytes", 1000);
  BOOST_TEST(collectives_family().work(shape).bytes_link == 1500);
}

BOOST_AUTO_TEST_CASE(grids_have_no_duplicates_and_only_shapes_that_can_run) {
  for (const Family* family : {&all_to_all_family(), &collectives_family(), &kv_push_family(), &expert_move_family()})
    for (const Grid grid : {Grid::quick, Grid::full, Grid::sanitize}) {
      std::set<std::string> keys;
      for (const Shape& shape : family->grid(grid)) {
        BOOST_REQUIRE_MESSAGE(keys.insert(shape.key()).second, shape.key());
        if (family == &all_to_all_family()) {
          const char* problem = a2a::shape_problem(a2a_shape(shape));
          BOOST_REQUIRE_MESSAGE(problem == nullptr, shape.key() << ": " << (problem ? problem : ""));
        }
        if (family == &collectives_family()) BOOST_REQUIRE_EQUAL(shape.number("bytes") % (16 * shape.number("ranks")), 0);
        if (family == &kv_push_family()) BOOST_REQUIRE_EQUAL(shape.number("bytes") % 16, 0);
      }
    }
}

BOOST_AUTO_TEST_CASE(link_bytes_of_a_round_trip_are_copies_to_other_ranks) {
  Shape shape;
  shape.set("part", "pair").set("path", "lsa").set("ranks", 8).set("tokens", 100).set("hidden", 4096).set("top_k", 6).set("experts", 256);
  shape.set("payload", "fp8").set("routing", "balanced").set("ctas", 0);
  const double copies = 100 * a2a::expected_copies(8, 256, 6) * 7 / 8;
  const double row = 4096 + 4096 / 32 + 64 + 2 * 4096;  // values, scales, meta data; then the result in bf16
  BOOST_CHECK_CLOSE(all_to_all_family().work(shape).bytes_link, copies * row, 1e-9);
  shape.set("path", "virtual");
  BOOST_TEST(all_to_all_family().work(shape).bytes_link == 0);
}

BOOST_AUTO_TEST_CASE(blocks_lie_apart_inside_their_buffer_and_in_no_order) {
  const BlockPlaces places = draw_places(4096, 1000, int64_t{1} << 30, 3);
  const std::set<int64_t> distinct(places.offset.begin(), places.offset.end());
  BOOST_TEST(distinct.size() == 1000u);
  BOOST_TEST(places.buffer_bytes == 2000 * 4096);
  BOOST_TEST(*distinct.rbegin() + 4096 <= places.buffer_bytes);
  for (const int64_t offset : distinct) BOOST_REQUIRE_EQUAL(offset % 4096, 0);
  int runs = 1;
  for (std::size_t i = 1; i < places.offset.size(); ++i) runs += places.offset[i] != places.offset[i - 1] + 4096;
  BOOST_TEST(runs > 950);
  // A full buffer still holds every block once.
  BOOST_TEST(draw_places(16, 100, 1600, 3).buffer_bytes == 1600);
}

BOOST_AUTO_TEST_CASE(expert_weights_have_the_published_sizes) {
  std::set<int64_t> sizes;
  for (const Shape& shape : expert_move_family().grid(Grid::full)) sizes.insert(shape.number("expert_bytes"));
  BOOST_TEST(sizes.size() == 2u);
  BOOST_CHECK_CLOSE(static_cast<double>(*sizes.begin()), 13.37e6, 0.1);
  BOOST_CHECK_CLOSE(static_cast<double>(*sizes.rbegin()), 18.80e6, 0.1);
}

BOOST_AUTO_TEST_CASE(only_checked_rows_over_nvlink_measure_nvlink) {
  calib::Measurement row;
  row.ok = true;
  row.time_us.count = 20;
  for (const char* transport : {"nvlink", "mnnvl"}) {
    row.transport = transport;
    BOOST_TEST(calib::measures_nvlink(row));
  }
  for (const char* transport : {"loopback", "none", "fake", "pcie", "network", "mixed", "unknown", "host", "partly nvlink"}) {
    row.transport = transport;
    BOOST_TEST(!calib::measures_nvlink(row));
  }
  row.transport = "nvlink";
  row.ok = false;
  BOOST_TEST(!calib::measures_nvlink(row));
}
