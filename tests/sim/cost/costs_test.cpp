// What a cost file may say.
#define BOOST_TEST_MODULE costs
#include "sim/cost/costs.hpp"

#include <boost/test/unit_test.hpp>

#include "sim/base/error.hpp"

using namespace rackcast;

namespace {

std::string complaint(const std::string& family, const std::string& parameter, const std::string& value, const std::string& lo) {
  const std::string text = "name: own\ngpu: b200\nsource: test\nfamilies:\n  " + family + ":\n    form: \"\"\n    parameters:\n      " + parameter + ": {value: " + value +
                           ", lo: " + lo + ", hi: 1000, basis: assumed, source: test}\n";
  try {
    read_yaml_as<CostSpec>(YamlSource{"own.yaml", text}, {});
  } catch (const UserError& e) {
    return e.what();
  }
  return {};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_CASE(rates_of_zero_are_refused_and_named) {
  for (const char* rate : {"link_gbs", "mma_tflops", "nic_efficiency"}) {
    BOOST_TEST(has(complaint("nccl_all_gather", rate, "0", "0"), std::string("own.yaml:5:3: families: nccl_all_gather.") + rate + ": a rate must be > 0"));
    BOOST_TEST(has(complaint("nccl_all_gather", rate, "5", "0"), "a rate must be > 0"));  // a draw could take it
    BOOST_TEST(complaint("nccl_all_gather", rate, "5", "4") == "");
  }
}

BOOST_AUTO_TEST_CASE(only_composites_and_fused_experts_may_take_time_back) {
  BOOST_TEST(has(complaint("nccl_all_gather", "a0_us", "-3", "-4"), "nccl_all_gather.a0_us: must be >= 0"));
  BOOST_TEST(complaint("nccl_all_gather", "a0_us", "3", "-1") == "");
  BOOST_TEST(complaint("composite", "a0_us", "-3", "-4") == "");
  BOOST_TEST(complaint("moe_fused", "tb_us", "-3", "-4") == "");
}
