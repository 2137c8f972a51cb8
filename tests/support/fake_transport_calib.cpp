// rackcast-calib's launching, bootstrap, agreement and file writing with a FAKE transport: nothing is moved, every
// "measurement" is a number made from the shape. For tests on machines without a GPU only; its rows say transport "fake".
//   fake_transport_calib OUT.jsonl [--points N] [--limit S] [--rendezvous R] [--die RANK,POINT] [--kill RANK,POINT] [--hang RANK,POINT] [--throw RANK,POINT]
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "calib/rendezvous.hpp"
#include "calib/world_points.hpp"
#include "kernels/family.hpp"
#include "sim/base/error.hpp"

using namespace rackcast;
using namespace rackcast::calib;

namespace {

class FakeFamily final : public kernels::Family {
 public:
  std::string name() const override { return "fake"; }
  std::string summary() const override { return "no kernel at all"; }
  std::string math(const kernels::Shape&) const override { return "none"; }
  std::vector<kernels::Axis> axes() const override { return {}; }
  std::vector<kernels::Shape> grid(kernels::Grid) const override { return {}; }
  kernels::Work work(const kernels::Shape&) const override { return {}; }
};

struct Accident {
  int rank = -1, point = -1;
};
Accident accident(const std::string& text) {
  Accident a;
  std::sscanf(text.c_str(), "%d,%d", &a.rank, &a.point);
  return a;
}

struct Accidents {
  Accident die, kill, hang, failure;
};

class FakeTransport final : public PointWork {
 public:
  FakeTransport(Exchange& exchange, const Accidents& accidents) : exchange_(exchange), accidents_(accidents) {}
  bool possible(const PlannedPoint& point) override { return point.shape.number("ranks") == exchange_.ranks(); }
  Measurement take(const PlannedPoint& point) override {
    const auto number = static_cast<int>(point.shape.number("point"));
    const auto here = [&](const Accident& a) { return a.rank == exchange_.rank() && a.point == number; };
    if (here(accidents_.die)) std::_Exit(9);
    if (here(accidents_.kill)) std::raise(SIGKILL);
    if (here(accidents_.hang)) std::this_thread::sleep_for(std::chrono::hours(1));
    if (here(accidents_.failure)) throw InternalError("an accident");
    Measurement row;
    row.op = point.family->name();
    row.implementation = "fake";
    row.math = "none";
    row.shape = point.shape;
    row.transport = "fake";
    // Each rank is the slowest in some iterations.
    std::vector<double> samples;
    for (int i = 0; i < 4; ++i) samples.push_back(number + (i % exchange_.ranks() == exchange_.rank() ? 10.0 * (i + 1) : 1.0));
    row.time_us = summarise(max_over_ranks(exchange_, "samples", samples));
    row.ok = true;
    return row;
  }

 private:
  Exchange& exchange_;
  Accidents accidents_;
};

int run(int argc, char** argv) {
  const std::string out = argc > 1 ? argv[1] : "fake.jsonl";
  int points = 3;
  RendezvousOptions options;
  options.limits = {20, 20};
  Accidents accidents;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--points") points = std::stoi(value);
    if (name == "--limit") options.limits = {std::stod(value), std::stod(value)};
    if (name == "--rendezvous") options.where = value;
    if (name == "--die") accidents.die = accident(value);
    if (name == "--kill") accidents.kill = accident(value);
    if (name == "--hang") accidents.hang = accident(value);
    if (name == "--throw") accidents.failure = accident(value);
  }
  const WorldPlace place = world_place(process_environment());
  if (options.where.empty()) options.where = choose_rendezvous(place, process_environment(), out + ".rendezvous");
  const auto world = connect_world(place, options);
  const FakeFamily family;
  std::vector<PlannedPoint> planned;
  for (const int ranks : rank_ladder(place.ranks))
    for (int p = 0; p < points; ++p) {
      PlannedPoint point;
      point.family = &family;
      point.shape.set("ranks", ranks).set("point", p);
      planned.push_back(point);
    }
  std::unique_ptr<MeasurementWriter> writer;
  if (place.rank == 0) {
    writer = std::make_unique<MeasurementWriter>(out);
    MeasurementHeader header;
    header.gpu = "no GPU, fake transport";
    header.compute_capability = "0.0";
    header.ranks = place.ranks;
    writer->append(header);
  }
  try {
    for (const int ranks : rank_ladder(place.ranks)) {
      if (const auto group = world->first(ranks)) {
        FakeTransport work(*group, accidents);
        take_points(*group, planned, work, writer.get(), [] { return 1.0; }, [](const Measurement&) {});
      }
      barrier(*world, "step", 3600);
    }
  } catch (const PeerLost&) {
    throw;
  } catch (const std::exception& error) {
    world->fail(error.what());
    throw;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const UserError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank lost or broken: %s\n", error.what());
    return 1;
  }
}
