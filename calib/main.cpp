// rackcast-calib: lists, checks and measures the kernels of this machine's GPU.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "calib/agreement.hpp"
#include "calib/gpu/runner.hpp"
#include "calib/gpu/world_runner.hpp"
#include "calib/model_shapes.hpp"
#include "calib/plan.hpp"
#include "sim/base/error.hpp"
#include "sim/base/input.hpp"

namespace {

using namespace rackcast;

struct Options {
  std::vector<std::string> families;
  bool quick = false;
  bool full = false;
  bool bench = false;
  bool sanitize = false;
  double sample = 1;
  double budget_s = 0;
  int passes = 1;
  bool no_hot = false;
  calib::RunRequest request;
  std::string filter;
  std::string model;
  int expert_ranks = 8;
  int gpus = 0;
  std::vector<int> ladder;
  std::string rendezvous;
  std::string window = "best";
  double limit_s = 120;
};

double parse_budget(const std::string& text) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(used);
  const double scale = unit == "s" ? 1 : unit == "min" ? 60 : unit == "h" ? 3600 : 0;
  if (used == 0 || scale == 0 || !(value > 0) || !std::isfinite(value)) throw UserError("--budget " + text + ": write a time with its unit, e.g. 480s or 8min");
  return value * scale;
}

kernels::Grid grid_of(const Options& options) {
  if (options.quick + options.full + options.bench + options.sanitize > 1)
    throw UserError("choose one of --quick, --full, --bench and --sanitize");
  if (options.full) return kernels::Grid::full;
  if (options.sanitize) return kernels::Grid::sanitize;
  return kernels::Grid::quick;
}

// The model's shapes where one is given, else the families' grids.
std::vector<calib::PlannedPoint> points_of(const Options& options) {
  const auto families = calib::select_families(options.families);
  if (options.model.empty()) return calib::plan_points(families, grid_of(options), options.passes, options.request.seed);
  if (options.bench || options.sanitize) throw UserError("--model gives shapes of its own: leave out --bench and --sanitize");
  const calib::ModelShapes shapes = calib::model_shapes(calib::read_model(options.model), options.expert_ranks, options.full);
  for (const std::string& part : shapes.not_covered) std::fprintf(stderr, "not measured: %s\n", part.c_str());
  return calib::order_points(shapes.points, families, options.passes, options.request.seed);
}

int list_model(const Options& options) {
  for (const calib::PlannedPoint& point : points_of(options)) {
    const kernels::Work work = point.family->work(point.shape);
    std::printf("%-16s %s  %.4g GFLOP  %.4g MB\n", point.family->name().c_str(), point.shape.key().c_str(), work.flop * 1e-9, work.bytes_hbm * 1e-6);
  }
  return 0;
}

int list(const Options& options) {
  if (!options.model.empty()) return list_model(options);
  for (const kernels::Family* family : calib::select_families(options.families)) {
    std::printf("%-16s quick %4zu  full %5zu  %s\n", family->name().c_str(), family->grid(kernels::Grid::quick).size(),
                family->grid(kernels::Grid::full).size(), family->summary().c_str());
    if (options.families.empty()) continue;
    for (const kernels::Axis& axis : family->axes()) std::printf("  %-14s %s\n", axis.name.c_str(), axis.meaning.c_str());
    for (const kernels::Shape& shape : family->grid(grid_of(options))) {
      const kernels::Work work = family->work(shape);
      std::printf("  %s  %.4g GFLOP  %.4g MB\n", shape.key().c_str(), work.flop * 1e-9, work.bytes_hbm * 1e-6);
    }
  }
  return 0;
}

calib::RunOutcome run_together(const Options& options, const calib::WorldPlace& place) {
  calib::WorldRequest world;
  world.run = options.request;
  std::erase_if(world.run.points, [](const calib::PlannedPoint& point) { return !calib::is_communication(*point.family); });
  if (place.ranks > 1 && options.gpus > 1) throw UserError("--gpus drives several GPUs by one process, but a launcher started " + std::to_string(place.ranks));
  world.threads = place.ranks > 1 ? 0 : options.gpus;
  world.place = place;
  world.ladder = options.ladder;
  const int most = place.ranks > 1 ? place.ranks : options.gpus;
  for (const int ranks : world.ladder)
    if (ranks < 1 || ranks > most) throw UserError("--ranks " + std::to_string(ranks) + ": must be 1 to " + std::to_string(most));
  world.rendezvous = options.rendezvous;
  world.window = options.window;
  world.limit_s = options.limit_s;
  return calib::run_world(world);
}

int run(Options& options, bool timed) {
  const auto families = calib::select_families(options.families);
  calib::RunRequest& request = options.request;
  request.timed = timed && !options.sanitize;
  request.quick = !options.full;
  request.hot = !options.no_hot;
  request.budget_s = options.budget_s;
  if (options.bench) return calib::run_bench(request, families) ? 0 : 1;
  request.points = points_of(options);
  if (options.sample < 1) request.points = calib::sample_points(request.points, options.sample, request.seed);
  if (!options.filter.empty())
    std::erase_if(request.points, [&](const calib::PlannedPoint& point) { return point.shape.key().find(options.filter) == std::string::npos; });
  const calib::WorldPlace place = calib::world_place(calib::process_environment());
  const calib::RunOutcome outcome = place.ranks > 1 || options.gpus > 1 ? run_together(options, place) : calib::run_points(request);
  if (place.rank != 0) return 0;  // rank 0 speaks for all
  std::fprintf(stderr, "%d points, %d failed their check, %d ran a fallback, %d not possible here, %d were in the file%s\n", outcome.points,
               outcome.failed, outcome.fallbacks, outcome.impossible, outcome.skipped,
               outcome.finished ? "" : "; budget used up, run again to continue");
  return outcome.failed ? 1 : 0;
}

std::vector<calib::Measurement> rows_of(const std::vector<std::string>& paths) {
  std::vector<calib::Measurement> rows;
  for (const std::string& path : paths) {
    check_input_path(path);
    std::ifstream file(path, std::ios::binary);
    if (!file) throw UserError("cannot read " + path);
    std::stringstream text;
    text << file.rdbuf();
    if (text.view().starts_with("\x1f\x8b")) throw UserError(path + " is compressed: unpack it with gunzip first");
    calib::MeasurementFile read = calib::parse_measurements(text.str(), path);
    std::move(read.points.begin(), read.points.end(), std::back_inserter(rows));
  }
  return rows;
}

int compare(const std::vector<std::string>& a, const std::vector<std::string>& b, const calib::AgreementLimits& limits, std::size_t list) {
  const std::vector<calib::Measurement> first = rows_of(a), second = rows_of(b);
  const auto differences = calib::compare_runs(first, second, limits);
  if (differences.empty()) throw UserError("the runs have no point in common");
  std::fputs(calib::agreement_table(differences, list).c_str(), stdout);
  for (const calib::Difference& difference : differences)
    if (!difference.inside) return 1;
  return 0;
}

// The library's ranges let nan through.
CLI::Validator finite() {
  return CLI::Validator([](const std::string& text) { return std::isfinite(std::strtod(text.c_str(), nullptr)) ? std::string() : "'" + text + "' is not a finite number"; }, "");
}

void add_selection(CLI::App& verb, Options& options) {
  verb.add_option("--family", options.families, "Kernel family; may be repeated (default: all)");
  verb.add_flag("--quick", options.quick, "The points that a fit needs (default)");
  verb.add_flag("--full", options.full, "Every regime");
  verb.add_flag("--sanitize", options.sanitize, "Small shapes on every code path, never timed; for compute-sanitizer");
  verb.add_option("--model", options.model, "Instead of the families' own shapes those of this model file (.yaml); with --full at more token counts");
  verb.add_option("--expert-ranks", options.expert_ranks, "With --model: ranks that share the experts")->capture_default_str();
}

void add_running(CLI::App& verb, Options& options, std::string& budget) {
  add_selection(verb, options);
  verb.add_option("--sample", options.sample, "Take this seeded share of the points, e.g. 0.1")->check(CLI::Range(0.0, 1.0))->check(finite());
  verb.add_option("--filter", options.filter, "Only shapes whose text holds this, e.g. 'tokens=1 '");
  verb.add_option("--seed", options.request.seed, "Seed of order and data");
  verb.add_option("--device", options.request.device, "CUDA device number");
  verb.add_option("--budget", budget, "Start no point after this time, e.g. 480s; run again to continue");
  verb.add_option("--implementation", options.request.force_implementation, "Only this implementation (sm90, portable...), no fallback");
  verb.add_option("--inject-fault", options.request.inject_fault, "Make this implementation's self-check fail, to see the fallback");
  verb.add_option("--gpus", options.gpus, "Drive this many GPUs by threads of this process (communication families)")->check(CLI::Range(1, 72));
  verb.add_option("--ranks", options.ladder, "Measure only these numbers of ranks (default: 1, 2, 4, ... up to all)")->delimiter(',');
  verb.add_option("--rendezvous", options.rendezvous, "How processes meet: tcp://host:port, file:///path, mpi (default: from the launcher)");
  verb.add_option("--window", options.window, "How peers' memory is reached: best, nccl (symmetric windows), peer (peer access, IPC)");
  verb.add_option("--limit", options.limit_s, "Seconds that ranks wait for one another before they give up")->check(CLI::PositiveNumber)->check(finite());
  verb.add_option("--library-path", options.request.library_folders, "Folder that holds cuBLASLt or NCCL; may be repeated");
}

int dispatch(int argc, char** argv) {
  CLI::App app{"Measures the kernels of a model server on this machine's GPU.\nExample: rackcast-calib run --quick --out h200.jsonl"};
  app.require_subcommand(1);
  app.set_version_flag("--version", RACKCAST_VERSION);
  Options options;
  std::string budget;
  CLI::App* list_verb = app.add_subcommand("list", "Families; with --family also their axes and shapes. Needs no driver");
  list_verb->footer("Example:\n  rackcast-calib list --family moe_gemm");
  add_selection(*list_verb, options);
  CLI::App* run_verb = app.add_subcommand("run", "Check and time; JSON lines to --out, a point already there is skipped");
  run_verb->footer("Example:\n  rackcast-calib run --quick --out h200.jsonl");
  add_running(*run_verb, options, budget);
  run_verb->add_flag("--bench", options.bench, "Only the shapes that have a bar, with the bars beside the figures");
  run_verb->add_flag("--no-hot", options.no_hot, "Skip the hot-cache timings");
  run_verb->add_flag("--sustained", options.request.sustained, "Also two seconds back to back of each compute-bound point: the rate that the power cap leaves");
  run_verb->add_option("--passes", options.passes, "Measure every point this often, in different orders")->check(CLI::Range(1, 10));
  run_verb->add_option("--out", options.request.out, "Measurement file (.jsonl), continued when it exists");
  CLI::App* check_verb = app.add_subcommand("check", "Check results against the FP64 references, time nothing");
  check_verb->footer("Example:\n  rackcast-calib check --family attention");
  add_running(*check_verb, options, budget);
  CLI::App* compare_verb = app.add_subcommand("compare", "Two runs' medians side by side: who agrees. Exit 1 when a point is outside");
  compare_verb->footer("Example:\n  rackcast-calib compare --first monday.jsonl --second friday.jsonl");
  std::vector<std::string> run_a, run_b;
  calib::AgreementLimits limits;
  std::size_t list_at_most = 40;
  compare_verb->add_option("--first", run_a, "Measurement files of one run (.jsonl)")->required();
  compare_verb->add_option("--second", run_b, "Measurement files of the other run")->required();
  compare_verb->add_option("--split", limits.split_us, "Microseconds that part long from short times")->capture_default_str();
  compare_verb->add_option("--long", limits.large, "Allowed difference of long times")->capture_default_str();
  compare_verb->add_option("--short", limits.small, "Allowed difference of short times")->capture_default_str();
  compare_verb->add_option("--from", limits.least_us, "Compare no time shorter than this, microseconds")->capture_default_str();
  compare_verb->add_option("--list", list_at_most, "Points outside to name")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  if (!budget.empty()) options.budget_s = parse_budget(budget);
  if (*list_verb) return list(options);
  if (*compare_verb) return compare(run_a, run_b, limits, list_at_most);
  return run(options, static_cast<bool>(*run_verb));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return dispatch(argc, argv);
  } catch (const UserError& error) {
    std::fprintf(stderr, "rackcast-calib: %s\n", error.what());
    return 2;
  } catch (const BoundMissed& error) {
    std::fprintf(stderr, "rackcast-calib: %s\n", error.what());
    return 1;
  } catch (const Unavailable& error) {
    std::fprintf(stderr, "rackcast-calib: not possible here: %s\n", error.what());
    return 3;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rackcast-calib: internal error: %s\n", error.what());
    return 70;
  }
}
