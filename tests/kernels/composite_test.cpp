#define BOOST_TEST_MODULE composite
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "kernels/composite.hpp"

using namespace rackcast::kernels;

namespace {

std::vector<const CompositeFamily*> composites() {
  std::vector<const CompositeFamily*> found;
  for (const Family* family : families())
    if (const auto* composite = dynamic_cast<const CompositeFamily*>(family)) found.push_back(composite);
  return found;
}

std::size_t count(const std::vector<Part>& parts, const std::string& family) {
  return static_cast<std::size_t>(std::count_if(parts.begin(), parts.end(), [&](const Part& part) { return part.family == family; }));
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_part_names_a_family_and_only_axes_that_it_has) {
  BOOST_TEST(composites().size() >= 2u);
  for (const CompositeFamily* composite : composites())
    for (const Shape& shape : composite->grid(Grid::full))
      for (const Part& part : composite->parts(shape)) {
        const Family* family = find_family(part.family);
        BOOST_REQUIRE(family != nullptr);
        const auto axes = family->axes();
        for (const auto& value : part.shape.values())
          BOOST_TEST(std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.name == value.axis; }), part.family << ' ' << value.axis);
        BOOST_TEST(part.shape.values().size() == axes.size(), part.family << " lacks an axis: " << part.shape.key());
      }
}

BOOST_AUTO_TEST_CASE(the_work_of_a_layer_is_the_sum_of_its_parts) {
  for (const CompositeFamily* composite : composites()) {
    const Shape shape = composite->grid(Grid::quick).front();
    double flop = 0;
    for (const Part& part : composite->parts(shape)) flop += find_family(part.family)->work(part.shape).flop;
    BOOST_TEST(composite->work(shape).flop == flop);
  }
}

BOOST_AUTO_TEST_CASE(a_layer_that_reuses_a_selection_has_no_index_and_no_top_k) {
  const auto own = attention_parts(layer_shapes("v4.1-flash"), 8, 4096, true), reused = attention_parts(layer_shapes("v4.1-flash"), 8, 4096, false);
  BOOST_TEST(count(own, "indexer") == 1u);
  BOOST_TEST(count(own, "topk") == 1u);
  BOOST_TEST(count(reused, "indexer") + count(reused, "topk") == 0u);
  BOOST_TEST(count(reused, "sparse_attention") == 1u);
}

BOOST_AUTO_TEST_CASE(drafting_reads_the_head_once_a_pass_and_the_markov_table_once_a_step) {
  const auto* draft = dynamic_cast<const CompositeFamily*>(find_family("draft_block"));
  BOOST_REQUIRE(draft != nullptr);
  const auto of = [&](const char* kind, int steps) {
    return draft->parts(Shape().set("kind", kind).set("requests", 16).set("steps", steps).set("ranks", 8));
  };
  const auto with = [](const std::vector<Part>& parts, int k, int n) {
    return std::count_if(parts.begin(), parts.end(), [&](const Part& p) { return p.family == "dense" && p.shape.number("k") == k && p.shape.number("n") == n; });
  };
  BOOST_TEST(with(of("mtp", 3), 4096, 129280) == 3);
  BOOST_TEST(with(of("dspark", 5), 5120, 129280) == 1);
  BOOST_TEST(with(of("dspark", 5), 256, 129280) == 5);
  BOOST_TEST(count(of("dspark", 5), "sparse_attention") == 3u);
  BOOST_TEST(count(of("mtp", 1), "moe_gemm") == 1u);
}
