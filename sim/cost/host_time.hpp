// What the host adds to an engine step. The slowest rank's work is
//   work = h0 + h1 * requests + h2 * new requests + posting of descriptors,
// and every rank's host is late by an exponential delay of mean j, so that a step of R ranks waits for
//   E[max of R delays] = j (1 + 1/2 + ... + 1/R).
// mode sync:  exposed = work + E[max] + agreement * log2 R + what is posted behind the launch and outlasts the GPU
// mode async: exposed = E[max(0, work + behind + max of R delays - gpu)]
//           = j sum over k = 1..R of (1 - (1 - e^(-s/j))^k) / k, where s = gpu - work - behind >= 0 is the slack.
// An iteration with prompts that is launched kernel by kernel lasts at least layers * eager_layer, whatever the GPU needs.
// Delays are taken as those of R equally loaded ranks, an upper bound when one rank has most work. No draws: the same
// inputs give the same time.
#pragma once
#include <cmath>
#include <span>

#include "sim/cost/forms.hpp"
#include "sim/spec/host.hpp"

namespace rackcast {

struct RankBatch;

double expected_slowest_delay(double mean_s, int ranks);                     // E[max of `ranks` exponential delays]
double expected_excess_delay(double mean_s, int ranks, double slack_s);      // E[max(0, that maximum - slack)]

class HostTime {
 public:
  HostTime() = default;
  HostTime(const HostSpec& spec, int hosts, int layers, ParameterReader& read);

  double work_s(const RankBatch& rank) const;   // of one rank, before it launches its step
  double exposed_s(double slowest_work_s, double slowest_behind_s, double gpu_s, bool prompts = false) const;
  Basis basis() const { return basis_; }

 private:
  double step_s_ = 0, request_s_ = 0, new_request_s_ = 0, jitter_s_ = 0, agreement_s_ = 0, eager_s_ = 0;
  int hosts_ = 1;                               // that must come together: data-parallel ranks
  bool hidden_ = true;
  Basis basis_ = Basis::assumed;
};

}  // namespace rackcast
