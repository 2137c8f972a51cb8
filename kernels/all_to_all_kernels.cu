#include "kernels/all_to_all_kernels.hpp"

#include <algorithm>

#include "kernels/all_to_all_reference.hpp"
#include "kernels/early_launch.hpp"
#include "sim/base/error.hpp"

namespace rackcast::a2a {

namespace {

__device__ RankState with_table(const RankState& state, const PeerTable& table) {
  RankState mine = state;
  mine.window = table.base;
  return mine;
}

// Launched while the kernel before still runs: only the launch itself is hidden, nothing is read before that kernel is over.
__device__ void after_the_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ void linger(uint64_t ns) {
  uint64_t start;
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - start < ns);
}

// A kernel for each payload: neither pays for the registers of the other.
template <Payload payload>
__global__ void __launch_bounds__(block_threads, 2)
dispatch_kernel(const __grid_constant__ RankState state, const __grid_constant__ PeerTable table, const __grid_constant__ Knobs knobs,
                bool signal, bool wait) {
  __shared__ alignas(16) char shared[sizeof(DispatchShared)];
  after_the_kernel_before();
  RankState mine = with_table(state, table);
  mine.shape.payload = payload;
  DeviceContext<false> context(knobs, mine.rank, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), shared);
  dispatch(context, mine, signal, wait);
}

__global__ void __launch_bounds__(block_threads, 2)
experts_kernel(const __grid_constant__ RankState state, const __grid_constant__ PeerTable table, const __grid_constant__ Knobs knobs,
               uint32_t epoch) {
  __shared__ alignas(16) char shared[sizeof(DispatchShared)];
  const RankState mine = with_table(state, table);
  DeviceContext<false> context(knobs, mine.rank, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), shared);
  run_experts(context, mine, epoch ? epoch : mine.epoch[0], false);
}

__global__ void __launch_bounds__(block_threads, 2)
combine_kernel(const __grid_constant__ RankState state, const __grid_constant__ PeerTable table, const __grid_constant__ Knobs knobs,
               bool signal, bool wait) {
  __shared__ alignas(16) char shared[sizeof(DispatchShared)];
  after_the_kernel_before();
  const RankState mine = with_table(state, table);
  DeviceContext<false> context(knobs, mine.rank, static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), shared);
  combine(context, mine, signal, wait);
}

__global__ void __launch_bounds__(block_threads)
barrier_kernel(const __grid_constant__ RankState state, const __grid_constant__ PeerTable table, const __grid_constant__ Knobs knobs,
               uint32_t epoch, uint64_t linger_ns) {
  __shared__ alignas(16) char shared[sizeof(DispatchShared)];
  const RankState mine = with_table(state, table);
  DeviceContext<false> context(knobs, mine.rank, 0, 1, shared);
  barrier(context, mine, epoch);
  linger(linger_ns);
}

template <bool Shaken>
__global__ void __launch_bounds__(block_threads, 1)
round_trip_kernel(const RankState* ranks, int blocks_per_rank, const __grid_constant__ Knobs knobs) {
  __shared__ alignas(16) char shared[sizeof(DispatchShared)];
  const RankState mine = ranks[static_cast<int>(blockIdx.x) / blocks_per_rank];
  DeviceContext<Shaken> context(knobs, mine.rank, static_cast<int>(blockIdx.x) % blocks_per_rank, blocks_per_rank, shared);
  const uint32_t epoch = dispatch(context, mine, true, false);
  run_experts(context, mine, epoch, true);
  combine(context, mine, false, true);
  context.finish();
}

// One thread a block of 32 values: the plain way, with nothing in common with the kernels above but the number formats.
__global__ void reference_kernel(const __grid_constant__ Shape shape, int tokens, const uint16_t* input, const int32_t* expert,
                                 const float* weight, const float* gain, uint16_t* out) {
  const int blocks = shape.hidden / scale_block;
  const int64_t index = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (index >= int64_t{tokens} * blocks) return;
  const int64_t t = index / blocks;
  const int64_t at = t * shape.hidden + index % blocks * scale_block;
  float value[scale_block];
  float largest = 0;
  for (int i = 0; i < scale_block; ++i) {
    value[i] = __uint_as_float(static_cast<uint32_t>(input[at + i]) << 16);
    largest = fmaxf(largest, fabsf(value[i]));
  }
  if (shape.payload == Payload::fp8_block && largest > 0) {
    const uint32_t ratio = __float_as_uint(largest * (1.0F / 448.0F));
    const uint32_t code = max((ratio >> 23) + ((ratio & 0x7fffffU) != 0 ? 1U : 0U), 1U);
    const float scale = __uint_as_float(code << 23);
    for (float& v : value) v = kernels::e4m3_to_float(kernels::float_to_e4m3(v / scale)) * scale;
  }
  float sum[scale_block] = {};
  for (int owner = 0; owner < shape.ranks; ++owner) {
    float factor = 0;
    bool here = false;
    for (int j = 0; j < shape.top_k; ++j) {
      const int e = expert[t * shape.top_k + j];
      if (e / shape.experts_per_rank != owner) continue;
      here = true;
      factor = __fmaf_rn(weight[t * shape.top_k + j], gain[e], factor);
    }
    if (!here) continue;
    for (int i = 0; i < scale_block; ++i) sum[i] += __bfloat162float(__float2bfloat16_rn(factor * value[i]));
  }
  for (int i = 0; i < scale_block; ++i) out[at + i] = __bfloat16_as_ushort(__float2bfloat16_rn(sum[i]));
}

__global__ void compare_kernel(const uint16_t* a, const uint16_t* b, int64_t count, unsigned long long* found) {
  unsigned long long mine = 0;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) mine += a[i] != b[i];
  if (mine) atomicAdd(found, mine);
}

__global__ void set_flags_kernel(const __grid_constant__ Shape shape, char* window, uint32_t epoch, const uint32_t* received) {
  const int source = static_cast<int>(threadIdx.x);
  if (source >= shape.ranks) return;
  *reinterpret_cast<uint64_t*>(window + shape.flag(flag_arrived, epoch, source)) = static_cast<uint64_t>(epoch) << 32 | received[source];
}

kernels::EarlyLaunch early(const Launch& launch, Stream stream) { return {static_cast<unsigned>(launch.blocks), block_threads, stream}; }

}  // namespace

void launch_dispatch(const Launch& launch, bool signal, bool wait, Stream stream) {
  const auto kernel = launch.state.shape.payload == Payload::bf16 ? dispatch_kernel<Payload::bf16> : dispatch_kernel<Payload::fp8_block>;
  launch_early(early(launch, stream), kernel, launch.state, launch.peers, launch.knobs, signal, wait);
}
void launch_experts(const Launch& launch, uint32_t epoch, Stream stream) {
  experts_kernel<<<launch.blocks, block_threads, 0, stream>>>(launch.state, launch.peers, launch.knobs, epoch);
  RACKCAST_LAUNCH_CHECK();
}
void launch_combine(const Launch& launch, bool signal, bool wait, Stream stream) {
  launch_early(early(launch, stream), combine_kernel, launch.state, launch.peers, launch.knobs, signal, wait);
}
void launch_barrier(const Launch& launch, uint32_t epoch, uint64_t linger_ns, Stream stream) {
  barrier_kernel<<<1, block_threads, 0, stream>>>(launch.state, launch.peers, launch.knobs, epoch, linger_ns);
  RACKCAST_LAUNCH_CHECK();
}

void launch_round_trip(const RankState* ranks, int count, int blocks_per_rank, const Knobs& knobs, bool shaken, Stream stream) {
  RACKCAST_CHECK(count * blocks_per_rank <= blocks_together(shaken), "more blocks than run together would wait for ever");
  Knobs copy = knobs;
  void* arguments[] = {&ranks, &blocks_per_rank, &copy};
  const void* kernel = shaken ? reinterpret_cast<const void*>(round_trip_kernel<true>) : reinterpret_cast<const void*>(round_trip_kernel<false>);
  RACKCAST_CUDA_CHECK(cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(count * blocks_per_rank)), dim3(block_threads), arguments, 0, stream));
}

int blocks_together(bool shaken) {
  int device = 0;
  int sms = 0;
  int per_sm = 0;
  RACKCAST_CUDA_CHECK(cudaGetDevice(&device));
  RACKCAST_CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  if (shaken) RACKCAST_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, round_trip_kernel<true>, block_threads, 0));
  else RACKCAST_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, round_trip_kernel<false>, block_threads, 0));
  return sms * per_sm;
}

void load_all_kernels() {
  cudaFuncAttributes ignored;
  RACKCAST_CUDA_CHECK(cudaFuncGetAttributes(&ignored, dispatch_kernel<Payload::bf16>));
  RACKCAST_CUDA_CHECK(cudaFuncGetAttributes(&ignored, dispatch_kernel<Payload::fp8_block>));
  RACKCAST_CUDA_CHECK(cudaFuncGetAttributes(&ignored, experts_kernel));
  RACKCAST_CUDA_CHECK(cudaFuncGetAttributes(&ignored, combine_kernel));
  RACKCAST_CUDA_CHECK(cudaFuncGetAttributes(&ignored, barrier_kernel));
  RACKCAST_CUDA_CHECK(cudaFuncGetAttributes(&ignored, reference_kernel));
  RACKCAST_CUDA_CHECK(cudaFuncGetAttributes(&ignored, compare_kernel));
  RACKCAST_CUDA_CHECK(cudaFuncGetAttributes(&ignored, set_flags_kernel));
}

void launch_reference(const Shape& shape, int tokens, const uint16_t* input, const int32_t* expert, const float* weight,
                      const float* gain, uint16_t* out, Stream stream) {
  const int64_t work = int64_t{tokens} * shape.hidden / scale_block;
  if (work == 0) return;
  reference_kernel<<<static_cast<unsigned>((work + 127) / 128), 128, 0, stream>>>(shape, tokens, input, expert, weight, gain, out);
  RACKCAST_LAUNCH_CHECK();
}
void launch_compare(const uint16_t* a, const uint16_t* b, int64_t count, unsigned long long* found, Stream stream) {
  if (count == 0) return;
  compare_kernel<<<static_cast<unsigned>(std::min<int64_t>((count + 255) / 256, 1024)), 256, 0, stream>>>(a, b, count, found);
  RACKCAST_LAUNCH_CHECK();
}
void launch_set_flags(const Shape& shape, char* window, uint32_t epoch, const uint32_t* received, Stream stream) {
  set_flags_kernel<<<1, 1024, 0, stream>>>(shape, window, epoch, received);
  RACKCAST_LAUNCH_CHECK();
}

RankMemory::RankMemory(const Shape& shape, int rank, const std::vector<float>& gain)
    : shape_(shape), rank_(rank), gain_(std::span<const float>(gain)) {
  const auto tokens = static_cast<std::size_t>(shape.tokens_max);
  const auto hidden = static_cast<std::size_t>(shape.hidden);
  const auto choices = tokens * static_cast<std::size_t>(shape.top_k);
  const auto ranks = static_cast<std::size_t>(shape.ranks);
  input_ = DeviceBuffer<uint16_t>(tokens * hidden);
  output_ = DeviceBuffer<uint16_t>(tokens * hidden);
  expert_ = DeviceBuffer<int32_t>(choices);
  weight_ = DeviceBuffer<float>(choices);
  destination_ = DeviceBuffer<uint64_t>(choices);
  slot_count_ = DeviceBuffer<uint32_t>(static_cast<std::size_t>(count_words(shape)));
  arrived_blocks_ = DeviceBuffer<uint32_t>(3);
  epoch_ = DeviceBuffer<uint32_t>(2);
  sent_ = DeviceBuffer<uint32_t>(ranks);
  for (const auto* words : {&slot_count_, &arrived_blocks_, &epoch_, &sent_}) RACKCAST_CUDA_CHECK(cudaMemset(words->data(), 0, words->bytes()));
}

void RankMemory::load(const RankTokens& tokens, uint64_t input_seed) {
  RACKCAST_CHECK(tokens.tokens <= shape_.tokens_max, "more tokens than the window holds");
  tokens_ = tokens.tokens;
  expert_.assign(tokens.expert);
  weight_.assign(tokens.weight);
  kernels::fill_bf16_normal(input_.data(), static_cast<std::size_t>(tokens_) * static_cast<std::size_t>(shape_.hidden), 1.0F, input_seed);
  kernels::poison(output_.data(), output_.bytes());
}

RankState RankMemory::state() const {
  RankState state;
  set_shape(state, shape_);
  state.rank = rank_;
  state.tokens = tokens_;
  state.input = input_.data();
  state.expert = expert_.data();
  state.weight = weight_.data();
  state.gain = gain_.data() + static_cast<std::ptrdiff_t>(rank_) * shape_.experts_per_rank;
  state.output = output_.data();
  state.destination = destination_.data();
  state.slot_count = slot_count_.data();
  state.arrived_blocks = arrived_blocks_.data();
  state.epoch = epoch_.data();
  state.sent = sent_.data();
  return state;
}

void RankMemory::compare(unsigned long long* found, Stream stream) {
  if (wanted_.size() == 0) wanted_ = DeviceBuffer<uint16_t>(output_.size());
  launch_reference(shape_, tokens_, input_.data(), expert_.data(), weight_.data(), gain_.data(), wanted_.data(), stream);
  launch_compare(wanted_.data(), output_.data(), int64_t{tokens_} * shape_.hidden, found, stream);
}

unsigned long long RankMemory::differences(Stream stream) {
  DeviceBuffer<unsigned long long> found(1);
  RACKCAST_CUDA_CHECK(cudaMemsetAsync(found.data(), 0, found.bytes(), stream));
  compare(found.data(), stream);
  RACKCAST_CUDA_CHECK(cudaStreamSynchronize(stream));
  return found.to_host()[0];
}

uint32_t RankMemory::last_epoch() const {
  const std::vector<uint32_t> both = epoch_.to_host();
  return std::max(both[0], both[1]);
}
void RankMemory::set_epoch(uint32_t epoch) { epoch_.assign(std::vector<uint32_t>{epoch, epoch}); }

}  // namespace rackcast::a2a
