#define BOOST_TEST_MODULE plan
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>

#include "calib/plan.hpp"
#include "sim/base/error.hpp"

using namespace rackcast;

BOOST_AUTO_TEST_CASE(every_family_has_grids_without_duplicates_and_work_for_every_shape) {
  BOOST_TEST(!kernels::families().empty());
  for (const kernels::Family* family : kernels::families())
    for (const kernels::Grid grid : {kernels::Grid::quick, kernels::Grid::full, kernels::Grid::sanitize, kernels::Grid::bench}) {
      std::set<std::string> keys;
      for (const kernels::Shape& shape : family->grid(grid)) {
        BOOST_TEST(keys.insert(shape.key()).second, family->name() << ' ' << shape.key());
        const kernels::Work work = family->work(shape);
        BOOST_TEST(work.flop + work.bytes_hbm + work.bytes_link + work.touched >= 0);
        for (const auto& value : shape.values()) {
          const auto axes = family->axes();
          BOOST_TEST(std::any_of(axes.begin(), axes.end(), [&](const kernels::Axis& axis) { return axis.name == value.axis; }),
                     family->name() << " does not explain axis " << value.axis);
        }
      }
    }
}

BOOST_AUTO_TEST_CASE(the_sanitize_grids_together_stay_at_forty_small_shapes_a_family) {
  for (const kernels::Family* family : kernels::families()) BOOST_TEST(family->grid(kernels::Grid::sanitize).size() <= 40u);
}

BOOST_AUTO_TEST_CASE(a_plan_holds_every_shape_once_a_pass_in_the_order_of_its_seed) {
  const auto families = calib::select_families({});
  const auto plan = calib::plan_points(families, kernels::Grid::quick, 2, 7);
  std::size_t shapes = 0;
  for (const kernels::Family* family : families) shapes += family->grid(kernels::Grid::quick).size();
  BOOST_TEST(plan.size() == 2 * shapes);
  const auto again = calib::plan_points(families, kernels::Grid::quick, 2, 7), other = calib::plan_points(families, kernels::Grid::quick, 2, 8);
  const auto same = [&](const auto& a) {
    return std::equal(a.begin(), a.end(), plan.begin(), [](const auto& x, const auto& y) { return x.family == y.family && x.shape == y.shape && x.pass == y.pass; });
  };
  BOOST_TEST(same(again));
  BOOST_TEST(!same(other));
  BOOST_TEST(plan.front().pass == 1);
  BOOST_TEST(plan.back().pass == 2);
}

BOOST_AUTO_TEST_CASE(a_sample_has_every_family_and_about_its_share) {
  const auto plan = calib::plan_points(calib::select_families({}), kernels::Grid::full, 1, 1);
  const auto sample = calib::sample_points(plan, 0.1, 3);
  std::set<const kernels::Family*> seen;
  for (const auto& point : sample) seen.insert(point.family);
  BOOST_TEST(seen.size() == kernels::families().size());
  BOOST_TEST(static_cast<double>(sample.size()) > 0.05 * static_cast<double>(plan.size()));
  BOOST_TEST(static_cast<double>(sample.size()) < 0.2 * static_cast<double>(plan.size()));
}

BOOST_AUTO_TEST_CASE(an_unknown_family_is_named_with_those_that_are) {
  try {
    calib::select_families({"sparse_atention"});
    BOOST_FAIL("accepted");
  } catch (const UserError& error) {
    const std::string text = error.what();
    BOOST_TEST(text.find("no kernel family 'sparse_atention'") != std::string::npos);
    BOOST_TEST(text.find("sparse_attention") != std::string::npos);
  }
}
