#include "sim/engine/recorder.hpp"

namespace rackcast {

Recorder::Recorder(const std::string& rows_path, std::function<void(double)> progress) : progress_(std::move(progress)) {
  if (rows_path.empty()) return;
  rows_ = std::make_unique<TextFile>(rows_path);
  fmt::format_to(std::back_inserter(rows_->text()),
                 "arrival_s,admitted_s,prompt_done_s,first_token_s,finish_s,lane,play,stream,input_tokens,output_tokens,hit_gpu_tokens,"
                 "hit_host_tokens,hit_ideal_tokens,prefill_engine,prefill_rank,decode_engine,decode_rank,preemptions\n");
}

void Recorder::started(const RunLayout& layout) {
  if (time_series) time_series->started(layout);
  if (event_trace) event_trace->started(layout);
}

void Recorder::window_opened(double time_s) {
  if (event_trace) event_trace->window_opened(time_s);
}

void Recorder::finished(const RequestRecord& r) {
  statistics.add(r);
  if (!rows_) return;
  fmt::format_to(std::back_inserter(rows_->text()), "{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                 r.arrival_s, r.admitted_s, r.prompt_done_s, r.first_token_s, r.finish_s, r.lane, r.play, r.stream, r.input_tokens,
                 r.output_tokens, r.hit_gpu_tokens, r.hit_host_tokens, r.hit_ideal_tokens, r.prefill_engine, r.prefill_rank,
                 r.decode_engine, r.decode_rank, r.preemptions);
  rows_->flush_if_large();
}

void Recorder::sampled(const RunSample& sample) {
  if (time_series) time_series->sampled(sample);
}

void Recorder::progress(double share_done) {
  if (progress_) progress_(share_done);
}

void Recorder::close() {
  if (rows_) rows_->close();
  if (time_series) time_series->close();
  if (event_trace) event_trace->close();
}

}  // namespace rackcast
