#include "sim/cost/host_time.hpp"

#include <algorithm>

#include "sim/cost/step_model.hpp"

namespace rackcast {

double expected_slowest_delay(double mean_s, int ranks) {
  double sum = 0;
  for (int k = ranks; k >= 1; --k) sum += 1.0 / k;
  return mean_s * sum;
}

double expected_excess_delay(double mean_s, int ranks, double slack_s) {
  if (slack_s <= 0) return expected_slowest_delay(mean_s, ranks) - slack_s;
  constexpr double beyond = 50;  // means: less than 10^-20 of the delay is left
  if (mean_s <= 0 || slack_s > beyond * mean_s) return 0;
  const double all_before = -std::expm1(-slack_s / mean_s);  // that one rank's delay ends within the slack
  double sum = 0, power = 1;
  for (int k = 1; k <= ranks; ++k) {
    power *= all_before;
    sum += (1 - power) / k;
  }
  return mean_s * sum;
}

HostTime::HostTime(const HostSpec& spec, int hosts, int layers, ParameterReader& read) : hosts_(hosts), hidden_(spec.mode == HostMode::async) {
  constexpr double us = 1e-6;
  bool all_given = true;
  const auto take = [&](Seconds given, const char* parameter) {
    all_given = all_given && given.value() >= 0;
    return given.value() >= 0 ? given.value() : read.value("host", parameter) * us;
  };
  step_s_ = take(spec.per_step, "h0_us");
  request_s_ = take(spec.per_request, "h1_us");
  new_request_s_ = take(spec.per_new_request, "admission_us");
  jitter_s_ = take(spec.jitter, "jitter_us");
  agreement_s_ = take(spec.agreement, "agreement_us");
  if (!spec.prompt_graphs) eager_s_ = layers * take(spec.eager_layer, "eager_layer_us");
  basis_ = all_given ? Basis::assumed : read.take_basis();
}

double HostTime::work_s(const RankBatch& rank) const {
  return step_s_ + request_s_ * (rank.decode_requests + rank.prefill_requests) + new_request_s_ * rank.new_requests + rank.host_s;
}

double HostTime::exposed_s(double work_s, double behind_s, double gpu_s, bool prompts) const {
  const double launch_s = prompts ? std::max(0.0, eager_s_ - gpu_s) : 0.0;  // by which the launches outlast the kernels
  const double busy_s = gpu_s + launch_s;
  if (hidden_) return launch_s + expected_excess_delay(jitter_s_, hosts_, busy_s - work_s - behind_s);
  return launch_s + work_s + expected_slowest_delay(jitter_s_, hosts_) + agreement_s_ * std::log2(hosts_) + std::max(0.0, behind_s - busy_s);
}

}  // namespace rackcast
