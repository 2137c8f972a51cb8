// Many scenarios, each in a process of its own: what sweep and plan share. The pool hides whether the processes are on
// this machine or also on others.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/store.hpp"
#include "sim/base/fork_server.hpp"
#include "sim/spec/scenario.hpp"

namespace rackcast {

// Where tasks run. At most slots() at once; the caller keeps count.
class Pool {
 public:
  virtual ~Pool() = default;
  virtual std::size_t slots() const = 0;
  virtual std::size_t running() const = 0;
  virtual void submit(std::uint64_t id, const Fields& request, const TaskLimits& limits) = 0;
  virtual std::optional<TaskOutcome> wait(double seconds) = 0;
};

class LocalPool final : public Pool {
 public:
  LocalPool(ForkServer& server, std::size_t jobs) : server_(server), jobs_(jobs) {}
  std::size_t slots() const override { return jobs_; }
  std::size_t running() const override { return server_.running(); }
  void submit(std::uint64_t id, const Fields& request, const TaskLimits& limits) override { server_.submit(id, request, limits); }
  std::optional<TaskOutcome> wait(double seconds) override { return server_.wait(seconds); }

 private:
  ForkServer& server_;
  std::size_t jobs_;
};

// The request of a scenario (its resolved YAML), and what the server makes of it: traces and costs are loaded in the
// server, once, and shared by all; the simulation runs in the fork. Fields out: metrics, manifest, breakdown (JSON).
Fields request_of(const Scenario& scenario);
ForkServer::Prepare scenario_runner(const Catalog& catalog);

// Hash of what decides a result: the resolved scenario without its name, the cost files, the program's version.
std::string content_key(const Scenario& scenario, const Catalog& catalog);

// A row without its outcome, and the outcome put into it.
StoredResult described(const Scenario& scenario, std::string key, std::uint64_t position);
void settle(StoredResult& row, const TaskOutcome& outcome);

// Runs jobs until `next` gives none. `ended` is called once for each, in the order in which they end.
struct BatchJob {
  StoredResult row;
  Fields request;
  TaskLimits limits;
};
void run_batch(Pool& pool, const std::function<std::optional<BatchJob>()>& next, const std::function<void(StoredResult)>& ended);

// One row of the "results" of sweep and plan, as JSON text: id, name, status, axes, deployment, metrics.
std::string result_json(const StoredResult& row, const std::vector<std::pair<std::string, std::string>>& axes);

}  // namespace rackcast
