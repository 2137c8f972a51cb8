#include "sim/trace/named_trace.hpp"

#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "sim/base/error.hpp"
#include "sim/trace/generate.hpp"
#include "sim/trace/read.hpp"

namespace rackcast {
namespace {

constexpr std::string_view generated = "generated-v1.0";
constexpr std::uint64_t usual_seed = 1;

std::uint64_t seed_of(std::string_view text) {
  std::uint64_t seed = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || stop != text.data() + text.size())
    throw UserError("trace: '" + std::string(text) + "' is no seed; write generated-v1.0:7");
  return seed;
}

}  // namespace

NamedTrace open_trace(const std::string& name) {
  if (name == generated) return {generate_trace(agentx_v1_shape(), usual_seed), ""};
  if (name.starts_with(std::string(generated) + ":"))
    return {generate_trace(agentx_v1_shape(), seed_of(std::string_view(name).substr(generated.size() + 1))), ""};
  if (name == "kv-cache-tester") {
    const char* root = std::getenv("RACKCAST_DATA");
    const std::string path = std::string(root ? root : "") + "/traces/kv-cache-tester/weka_rle.jsonl.gz";
    if (root && std::filesystem::exists(path)) return {read_trace({path}), ""};
    return {generate_trace(agentx_v1_shape(), usual_seed),
            "the recorded trace kv-cache-tester is not under RACKCAST_DATA: the generated v1.0 load stands in"};
  }
  return {read_trace({name}), ""};
}

}  // namespace rackcast
