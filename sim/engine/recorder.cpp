#include "sim/engine/recorder.hpp"

#include "sim/base/output.hpp"

namespace rackcast {

namespace {

constexpr std::size_t flush_bytes = std::size_t{1} << 20;

}  // namespace

Recorder::Recorder(const std::string& rows_path, std::function<void(double)> progress)
    : rows_path_(rows_path), progress_(std::move(progress)) {
  if (rows_path.empty()) return;
  check_output_path(rows_path);
  rows_.reset(std::fopen(rows_path.c_str(), "w"));
  if (!rows_) throw UserError(rows_path + ": cannot be written");
  fmt::format_to(std::back_inserter(buffer_),
                 "arrival_s,first_token_s,finish_s,lane,play,stream,input_tokens,output_tokens,hit_gpu_tokens,hit_host_tokens,"
                 "hit_ideal_tokens,prefill_engine,prefill_rank,decode_engine,decode_rank,preemptions\n");
}

Recorder::~Recorder() = default;

void Recorder::finished(const RequestRecord& r) {
  statistics.add(r);
  if (!rows_) return;
  fmt::format_to(std::back_inserter(buffer_), "{:.6f},{:.6f},{:.6f},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", r.arrival_s,
                 r.first_token_s, r.finish_s, r.lane, r.play, r.stream, r.input_tokens, r.output_tokens, r.hit_gpu_tokens,
                 r.hit_host_tokens, r.hit_ideal_tokens, r.prefill_engine, r.prefill_rank, r.decode_engine, r.decode_rank,
                 r.preemptions);
  if (buffer_.size() >= flush_bytes) flush();
}

void Recorder::sampled(double time_s, const std::vector<EngineSample>& samples) {
  time_line.times_s.push_back(time_s);
  time_line.samples.push_back(samples);
}

void Recorder::progress(double share_done) {
  if (progress_) progress_(share_done);
}

void Recorder::flush() {
  if (std::fwrite(buffer_.data(), 1, buffer_.size(), rows_.get()) != buffer_.size())
    throw UserError(rows_path_ + ": cannot be written (disk full?)");
  buffer_.clear();
}

void Recorder::close() {
  if (!rows_) return;
  flush();
  if (std::fflush(rows_.get()) != 0) throw UserError(rows_path_ + ": cannot be written (disk full?)");
  rows_.reset();
}

}  // namespace rackcast
