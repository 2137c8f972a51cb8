// --case of step: any text is refused or becomes a batch whose every sum is finite and not negative.
#include <cmath>

#include "sim/cost/step_case.hpp"
#include "tests/fuzz/target.hpp"

using namespace rackcast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refuse_or_read(data, size, [&](std::string_view text) {
    static const ModelSpec model;
    const RankBatch b = batch_of(parse_case(text), model, CasePhase::automatic);
    for (const double sum : {b.decode_tokens, b.decode_context, b.decode_query_context, b.prefill_tokens, b.prefill_query_context})
      RACKCAST_CHECK(std::isfinite(sum) && sum >= 0, "a batch has a sum that is no size");
  });
}
