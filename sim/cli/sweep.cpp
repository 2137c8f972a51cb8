// rackcast sweep: every combination of a sweep file's axes, each in its own process, results into SQLite as they come.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/cli/mpi_pool.hpp"
#include "sim/cli/option_checks.hpp"
#include "sim/cli/progress.hpp"
#include "sim/cli/verbs.hpp"
#include "sim/spec/sweep.hpp"

namespace rackcast {

namespace {

struct Arguments {
  std::string file, out;
  std::vector<std::string> sets;
  std::size_t jobs = 0;
  bool json = false;
};

// A scenario of the sweep, and the key under which its result lies.
struct Place {
  std::uint64_t position = 0;
  std::string key;
};

// What the sweep has come across; printed at the end.
struct Tally {
  std::map<std::string, std::uint64_t> invalid;  // by reason
  std::uint64_t invalid_count = 0, already = 0, done = 0, refused = 0, errors = 0;
};

class SweepRun {
 public:
  SweepRun(const Space& space, const Catalog& catalog, Store& store, Pool& pool) : space_(space), catalog_(catalog), store_(store), pool_(pool) {}

  void run() {
    finished_ = store_.finished_keys();
    Progress progress("sweep");
    const std::uint64_t all = space_.combinations();
    run_batch(
        pool_, [&] { return next(); },
        [&](const StoredResult& row) {
          ++(row.status == "done" ? tally_.done : row.status == "refused" ? tally_.refused : tally_.errors);
          store_.put(row);
          // By combinations passed, less those under way: the share that is behind us.
          const double behind = static_cast<double>(position_) - static_cast<double>(pool_.running());
          progress.update(behind / static_cast<double>(all), fmt::format("{} run, {} errors", tally_.done + tally_.refused + tally_.errors, tally_.errors));
        });
  }

  const Tally& tally() const { return tally_; }
  const std::vector<Place>& places() const { return places_; }

 private:
  std::optional<BatchJob> next() {
    for (; position_ < space_.combinations(); ++position_) {
      std::string reason;
      const auto point = space_.at(position_, reason);
      if (!point) {
        ++tally_.invalid[reason];
        ++tally_.invalid_count;
        continue;
      }
      std::string key = content_key(point->scenario, catalog_);
      places_.push_back({position_, key});
      if (finished_.contains(key)) {
        ++tally_.already;
        continue;
      }
      finished_.insert(key);  // two combinations may be one scenario
      BatchJob job{described(point->scenario, std::move(key), position_++), request_of(point->scenario),
                   {space_.spec().limits.time.value(), static_cast<std::uint64_t>(space_.spec().limits.memory.value())}};
      return job;
    }
    return std::nullopt;
  }

  const Space& space_;
  const Catalog& catalog_;
  Store& store_;
  Pool& pool_;
  std::set<std::string> finished_;
  std::uint64_t position_ = 0;
  std::vector<Place> places_;
  Tally tally_;
};

void print_json(const SweepSpec& spec, const SweepRun& run, const Space& space, const Store& store) {
  nlohmann::ordered_json invalid = nlohmann::ordered_json::object();
  for (const auto& [reason, count] : run.tally().invalid) invalid[reason] = count;
  fmt::print("{{\"sweep\":{},\"combinations\":{},\"invalid\":{},\"results\":[", nlohmann::ordered_json(spec.name).dump(), space.combinations(), invalid.dump());
  bool first = true;
  for (const Place& place : run.places()) {
    const auto row = store.find(place.key);
    if (!row) continue;
    StoredResult named = *row;  // the store's name may come from another sweep
    const auto values = space.values_at(place.position);
    if (!values.empty()) named.name = label_of(values);
    fmt::print("{}\n{}", first ? "" : ",", result_json(named, values));
    first = false;
  }
  fmt::print("\n]}}\n");
}

// The best of the sweep by throughput, for a look; everything is in the store.
void print_table(const SweepRun& run, const Space& space, const Store& store) {
  struct Row { double throughput; std::string text; };
  std::vector<Row> rows;
  std::size_t outside = 0;
  double most_outside = 0;
  for (const Place& place : run.places()) {
    const auto row = store.find(place.key);
    if (!row || row->status != "done") continue;
    const auto metrics = nlohmann::json::parse(row->metrics);
    const auto metric = [&](const char* name) { return metrics.contains(name) && metrics[name].is_number() ? metrics[name].get<double>() : 0.0; };
    const std::string label = label_of(space.values_at(place.position));
    if (metric("outside_range") > 0) ++outside, most_outside = std::max(most_outside, metric("outside_range"));
    rows.push_back({metric("total_tok_s_gpu"), fmt::format("{:>12.0f} {:>10.1f} {:>8.2f} {:>8.3f}  {}", metric("total_tok_s_gpu"), metric("p90_tok_s_user"),
                                                           metric("ttft_p90_s"), metric("cache_hit_total"), label.empty() ? row->name : label)});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.throughput > b.throughput; });
  fmt::print("{:>12} {:>10} {:>8} {:>8}  scenario\n", "tok/s/GPU", "P90 tok/s", "TTFT P90", "hits");
  constexpr std::size_t shown = 20;
  for (std::size_t i = 0; i < rows.size() && i < shown; ++i) fmt::print("{}\n", rows[i].text);
  if (rows.size() > shown) fmt::print("... and {} more in {}\n", rows.size() - shown, store.path());
  if (outside > 0)
    fmt::print("note: {} of {} results spend time in launches outside the range of their cost files' points, {:.1f}% at most (metric outside_range; `rackcast run` names them)\n",
               outside, rows.size(), 100 * most_outside);
}

int sweep(const Arguments& arguments, const Program& program) {
  const Catalog catalog = program.catalog();
  ForkServer server(scenario_runner(catalog));  // before MPI and before the store is open
  const std::size_t jobs = arguments.jobs > 0 ? arguments.jobs : default_jobs();
  if (launch().rank != 0) {
    make_pool(server, jobs);
    return 0;
  }
  const auto [own, other] = split_sets(arguments.sets, {"name", "base", "set", "axes", "conditions", "limits"});
  const SweepSpec spec = read_yaml_as<SweepSpec>(read_source(arguments.file), catalog.read_options(own));
  const Space space(spec.space, arguments.file, catalog, other);
  Store store(arguments.out, Store::Mode::write, [&](int process) {
    fmt::print(stderr, "rackcast: {} is being written by process {}; waiting for it\n", arguments.out, process);
  });
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<Pool> pool = make_pool(server, jobs);
  SweepRun run(space, catalog, store, *pool);
  run.run();

  const Tally& tally = run.tally();
  fmt::print(stderr, "{}: {} combinations: {} cannot be, {} were there, {} done, {} refused, {} errors in {:.1f} s\n", spec.name, space.combinations(),
             tally.invalid_count, tally.already, tally.done, tally.refused, tally.errors,
             std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  for (const auto& [reason, count] : tally.invalid) fmt::print(stderr, "  {} x {}\n", count, reason);
  if (arguments.json) print_json(spec, run, space, store);
  else print_table(run, space, store);
  return tally.errors > 0 ? 1 : 0;
}

}  // namespace

Action setup_sweep(CLI::App& app, const Program& program) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("sweep", arguments->file, "sweep file")->required()->type_name("SWEEP.yaml");
  app.add_option("--out", arguments->out, "result store; a sweep that was stopped goes on from it")->required()->check(not_empty())->type_name("RESULTS.sqlite");
  app.add_option("--jobs", arguments->jobs, "scenarios at once in each process (default: the cores)")->check(CLI::Range(0, 4096))->type_name("N");
  add_sets(app, arguments->sets);
  app.add_flag("--json", arguments->json, "all results as one JSON object");
  return [arguments, &program] { return sweep(*arguments, program); };
}

}  // namespace rackcast
