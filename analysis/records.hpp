// What a run keeps of one request, and what analysis reads. Times are seconds of simulated time.
#pragma once
#include <cstdint>

namespace rackcast {

struct RequestRecord {
  double arrival_s = 0;
  double admitted_s = 0;      // when an engine took it out of its queue
  double prompt_done_s = 0;   // when its last prompt token was computed
  double first_token_s = 0;   // when it reached the user
  double finish_s = 0;        // last token
  std::uint32_t lane = 0, play = 0, stream = 0;
  std::uint32_t input_tokens = 0, output_tokens = 0;
  std::uint32_t input_block_tokens = 0;                   // of the input, in full blocks (all of it without block ids)
  std::uint32_t hit_gpu_tokens = 0, hit_host_tokens = 0;  // of the input, found in HBM and loaded from host memory
  std::uint32_t hit_ideal_tokens = 0;                     // what a cache that never forgets would have held
  std::uint32_t prefill_engine = 0, prefill_rank = 0, decode_engine = 0, decode_rank = 0;
  std::uint32_t preemptions = 0;
};

}  // namespace rackcast
