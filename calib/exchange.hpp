// Small messages between the ranks of one measurement: bootstrap, agreement on what comes next, gathering of samples.
// Never on a timed path. Every rank makes the same calls in the same order; a call that not every rank makes within the
// time limit ends in PeerLost on all of them, naming the rank and what it was expected at.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "sim/base/error.hpp"

namespace rackcast::calib {

class PeerLost : public BoundMissed {
  using BoundMissed::BoundMissed;
};

struct ExchangeLimits {
  double connect_s = 120;  // until every rank is there
  double answer_s = 120;   // for one call
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // Everybody's text in rank order. `at` says what this is; ranks that disagree on it are out of step.
  // patience_s: longer than the usual limit where ranks without work wait for those with it; 0: the usual one.
  virtual std::vector<std::string> gather(const std::string& at, const std::string& mine, double patience_s = 0) = 0;
  // An exchange among the first n ranks, for those that belong to it; null on the others. All ranks call it.
  virtual std::unique_ptr<Exchange> first(int n) = 0;
  // Tells the others that this rank cannot go on. They throw PeerLost with the reason at their next call.
  virtual void fail(const std::string& reason) noexcept = 0;
  // Throws PeerLost when another rank is known to be gone; does not wait.
  virtual void poll() {}
};

std::string broadcast(Exchange& exchange, const std::string& at, const std::string& from_rank_0);
void barrier(Exchange& exchange, const std::string& at, double patience_s = 0);
// Element by element over the ranks. The samples of one iteration count as the slowest rank saw them.
std::vector<double> max_over_ranks(Exchange& exchange, const std::string& at, const std::vector<double>& mine);
bool all_true(Exchange& exchange, const std::string& at, bool mine);

std::unique_ptr<Exchange> alone();  // one rank

// n ranks that are threads of this process: element r belongs to rank r.
std::vector<std::unique_ptr<Exchange>> between_threads(int ranks, const ExchangeLimits& limits);

}  // namespace rackcast::calib
