#define BOOST_TEST_MODULE model_shapes
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <set>

#include "calib/model_shapes.hpp"
#include "sim/base/error.hpp"

using namespace rackcast;
using namespace rackcast::calib;

namespace {

ModelSpec model(const std::string& name) { return read_model(RACKCAST_SOURCE_DIR "/scenarios/models/" + name + ".yaml"); }

bool has(const ModelShapes& shapes, const std::string& family, const std::string& key) {
  return std::any_of(shapes.points.begin(), shapes.points.end(),
                     [&](const PlannedPoint& point) { return point.family->name() == family && point.shape.key().find(key) != std::string::npos; });
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_model_file_gives_shapes_with_all_axes_of_their_families) {
  for (const auto& file : std::filesystem::directory_iterator(RACKCAST_SOURCE_DIR "/scenarios/models")) {
    if (file.path().extension() != ".yaml") continue;
    const ModelShapes shapes = model_shapes(read_model(file.path().string()), 8, true);
    BOOST_TEST(shapes.points.size() > 50u, file.path());
    std::set<std::string> seen;
    for (const PlannedPoint& point : shapes.points) {
      BOOST_TEST(seen.insert(point.family->name() + ' ' + point.shape.key()).second);
      const auto axes = point.family->axes();
      BOOST_TEST(point.shape.values().size() == axes.size(), point.family->name() << ' ' << point.shape.key());
      for (const auto& value : point.shape.values())
        BOOST_TEST(std::any_of(axes.begin(), axes.end(), [&](const kernels::Axis& axis) { return axis.name == value.axis; }), value.axis);
      BOOST_TEST(point.family->work(point.shape).bytes_hbm > 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(v41_flash_has_its_projections_index_keys_and_experts) {
  const ModelShapes shapes = model_shapes(model("deepseek-v4.1-flash"), 32, false);
  BOOST_TEST(has(shapes, "dense", "n=1792 k=5120"));    // query rank 1280 and latent row 512
  BOOST_TEST(has(shapes, "dense", "n=32768 k=1280"));
  BOOST_TEST(has(shapes, "dense", "n=1024 k=4096 batch=8"));
  BOOST_TEST(has(shapes, "dense", "n=129280 k=5120"));
  BOOST_TEST(has(shapes, "indexer", "heads=32 form=dense format=fp4"));
  BOOST_TEST(has(shapes, "sparse_attention", "selected=512 format=v41"));
  BOOST_TEST(has(shapes, "moe_gemm", "hidden=5120 inter=2304 experts=12 rows=6 "));
  BOOST_TEST(shapes.not_covered.empty());
}

BOOST_AUTO_TEST_CASE(a_model_with_dense_latent_attention_gets_that_and_no_selection) {
  const ModelShapes shapes = model_shapes(model("deepseek-r1"), 8, false);
  BOOST_TEST(has(shapes, "mla_attention", "heads=128"));
  BOOST_TEST(!has(shapes, "topk", ""));
  BOOST_TEST(!has(shapes, "sparse_attention", ""));
}

BOOST_AUTO_TEST_CASE(more_ranks_than_experts_are_refused) { BOOST_CHECK_THROW(model_shapes(model("deepseek-r1"), 257, false), UserError); }

BOOST_AUTO_TEST_CASE(points_of_chosen_families_come_once_a_pass_in_a_seeded_order) {
  const ModelShapes shapes = model_shapes(model("deepseek-v4-flash"), 8, false);
  const auto families = select_families({"route", "permute"});
  const auto ordered = order_points(shapes.points, families, 2, 5), again = order_points(shapes.points, families, 2, 5);
  BOOST_REQUIRE(ordered.size() == again.size());
  BOOST_TEST(ordered.size() == 2u * 18u);  // six token counts: route, permute and unpermute
  for (std::size_t i = 0; i < ordered.size(); ++i) BOOST_TEST((ordered[i].shape == again[i].shape));
}
