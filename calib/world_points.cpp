#include "calib/world_points.hpp"

#include <cstdio>

namespace rackcast::calib {

namespace {

// Modes and caches under which a row of this point may be in the file.
bool in_file(const MeasurementWriter& writer, const PlannedPoint& point) {
  Measurement row;
  row.op = point.family->name();
  row.shape = point.shape;
  row.pass = point.pass;
  for (const char* mode : {"graph", "chain", "eager"}) {
    row.mode = mode;
    if (writer.has(row.key())) return true;
  }
  return false;
}

}  // namespace

WorldOutcome take_points(Exchange& exchange, const std::vector<PlannedPoint>& points, PointWork& work, MeasurementWriter* writer,
                         const std::function<double()>& seconds_left, const std::function<void(const Measurement&)>& show) {
  WorldOutcome outcome;
  std::string to_do;
  if (exchange.rank() == 0)
    for (const PlannedPoint& point : points) to_do += writer && in_file(*writer, point) ? '0' : '1';
  to_do = broadcast(exchange, "points to do", to_do);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const PlannedPoint& point = points[i];
    if (!work.possible(point)) {
      ++outcome.impossible;
      continue;
    }
    if (to_do[i] == '0') {
      ++outcome.skipped;
      continue;
    }
    const std::string at = point.family->name() + " " + point.shape.key();
    if (broadcast(exchange, at, seconds_left() > 0 ? "go" : "stop") != "go") {
      outcome.finished = false;
      break;
    }
    Measurement row;
    std::string trouble;
    try {
      row = work.take(point);
    } catch (const Unavailable& error) {
      trouble = error.what();
    }
    // Too little memory, say: it ends the point and not the run, when every rank had it.
    const std::vector<std::string> troubles = exchange.gather(at + ": done", (trouble.empty() ? (row.ok ? "+" : "-") : "!") + (trouble.empty() ? row.note : trouble));
    bool every_ok = true;
    std::string first_trouble;
    for (const std::string& theirs : troubles) {
      every_ok = every_ok && theirs[0] == '+';
      if (theirs[0] == '!' && first_trouble.empty()) first_trouble = theirs.substr(1);
      if (theirs[0] == '-' && row.note.empty()) row.note = theirs.substr(1);
    }
    if (!first_trouble.empty()) {
      ++outcome.impossible;
      if (exchange.rank() == 0) std::fprintf(stderr, "not possible here: %s: %s\n", at.c_str(), first_trouble.c_str());
      continue;
    }
    row.ok = every_ok;
    if (!every_ok) row.time_us = {};
    ++outcome.points;
    outcome.failed += every_ok ? 0 : 1;
    if (exchange.rank() != 0) continue;
    if (writer) writer->append(row);
    show(row);
  }
  return outcome;
}

}  // namespace rackcast::calib
