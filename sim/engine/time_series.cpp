#include "sim/engine/time_series.hpp"

#include <algorithm>
#include <cmath>

namespace rackcast {

namespace {

void add(fmt::memory_buffer& text, std::string_view part) { text.append(part.data(), part.data() + part.size()); }

}  // namespace

TimeSeries::TimeSeries(const std::string& path, std::vector<std::string> engine_names) : file_(path), names_(std::move(engine_names)) {}

// One column an engine and kind of link, for those of its GPUs together; one a node.
void TimeSeries::find_link_columns(const RunLayout& layout) {
  for (std::size_t i = 0; i < layout.links.size(); ++i) {
    const TopologyLink& link = layout.links[i];
    if (!std::isfinite(link.bytes_per_s)) continue;
    std::string owner;
    if (link.kind == LinkKind::node_memory) owner = fmt::format("node-{}", link.place);
    for (std::size_t e = 0; e < engines_.size() && owner.empty(); ++e)
      if (link.place - engines_[e].first_gpu < engines_[e].gpus) owner = names_[e];
    if (owner.empty()) continue;  // an idle GPU's
    const std::string name = fmt::format("{}.{}", owner, link_kind_name(link.kind));
    if (link_columns_.empty() || link_columns_.back().name != name) link_columns_.push_back({.name = name, .links = {}});
    link_columns_.back().links.push_back(i);
    link_columns_.back().bytes_per_s += link.bytes_per_s;
  }
}

void TimeSeries::started(const RunLayout& layout) {
  engines_ = layout.engines;
  busy_s_.assign(engines_.size(), 0);
  experts_moved_.assign(engines_.size(), 0);
  find_link_columns(layout);
  const auto out = std::back_inserter(file_.text());
  fmt::format_to(out, "time_s");
  for (const std::string& name : names_)
    fmt::format_to(out, ",{0}.utilisation,{0}.running,{0}.waiting,{0}.kv_used,{0}.kv_pinned", name);
  fmt::format_to(out, ",cache.hbm,cache.host");
  for (const LinkColumn& column : link_columns_) fmt::format_to(out, ",{}", column.name);
  for (std::size_t e = 0; e < engines_.size(); ++e)
    for (std::uint32_t r = 0; engines_[e].ranks > 1 && r < engines_[e].ranks; ++r)
      fmt::format_to(out, ",{0}.running.r{1},{0}.kv_used.r{1}", names_[e], r);
  for (std::size_t e = 0; e < engines_.size(); ++e) {
    if (!engines_[e].experts) continue;
    fmt::format_to(out, ",{}.experts_moved", names_[e]);
    for (std::uint32_t r = 0; r < engines_[e].ranks; ++r) fmt::format_to(out, ",{}.expert_load.r{}", names_[e], r);
  }
  fmt::format_to(out, "\n");
}

// Six decimals; whole numbers are much cheaper to print than floating point ones.
void TimeSeries::share(double part, double whole) {
  fmt::memory_buffer& text = file_.text();
  text.push_back(',');
  if (!(whole > 0)) return text.push_back('0');
  const auto units = static_cast<std::uint64_t>(std::llround(std::max(0.0, part / whole) * 1e6));
  add(text, fmt::format_int(units / 1000000).c_str());
  if (units % 1000000 == 0) return;
  const fmt::format_int digits(1000000 + units % 1000000);
  text.push_back('.');
  add(text, std::string_view(digits.data() + 1, 6));
}

void TimeSeries::count(std::uint64_t value) {
  file_.text().push_back(',');
  add(file_.text(), fmt::format_int(value).c_str());
}

void TimeSeries::sampled(const RunSample& sample) {
  const double interval_s = sample.time_s - time_s_;
  time_s_ = sample.time_s;
  fmt::format_to(std::back_inserter(file_.text()), "{:.3f}", sample.time_s);
  for (std::size_t e = 0; e < engines_.size(); ++e) {
    const EngineSample& engine = sample.engines[e];
    share(engine.busy_s - busy_s_[e], interval_s);
    busy_s_[e] = engine.busy_s;
    count(engine.running);
    count(engine.waiting);
    share(static_cast<double>(engine.kv_used_tokens), static_cast<double>(engines_[e].kv_tokens));
    share(static_cast<double>(engine.kv_pinned_tokens), static_cast<double>(engines_[e].kv_tokens));
  }
  const double asked = sample.asked_tokens - asked_;
  if (asked > 0) {
    share(sample.hit_gpu_tokens - hit_gpu_, asked);
    share(sample.hit_host_tokens - hit_host_, asked);
  } else {
    add(file_.text(), ",,");
  }
  asked_ = sample.asked_tokens;
  hit_gpu_ = sample.hit_gpu_tokens;
  hit_host_ = sample.hit_host_tokens;
  for (LinkColumn& column : link_columns_) {
    double bytes = 0;
    for (const std::size_t link : column.links) bytes += sample.link_bytes[link];
    share(bytes - column.bytes, column.bytes_per_s * interval_s);
    column.bytes = bytes;
  }
  for (std::size_t e = 0; e < engines_.size(); ++e) {
    if (engines_[e].ranks == 1) continue;
    const double rank_tokens = static_cast<double>(engines_[e].kv_tokens) / engines_[e].ranks;
    for (std::uint32_t r = 0; r < engines_[e].ranks; ++r) {
      count(sample.engines[e].rank_running[r]);
      share(static_cast<double>(sample.engines[e].rank_kv_used_tokens[r]), rank_tokens);
    }
  }
  for (std::size_t e = 0; e < engines_.size(); ++e) {
    if (!engines_[e].experts) continue;
    const EngineSample& engine = sample.engines[e];
    count(static_cast<std::uint64_t>(std::llround(engine.experts_moved - experts_moved_[e])));
    experts_moved_[e] = engine.experts_moved;
    for (const double load : engine.rank_expert_load) share(load, 1);
  }
  file_.text().push_back('\n');
  file_.flush_if_large();
}

}  // namespace rackcast
