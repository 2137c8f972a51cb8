#include "sim/spec/failures.hpp"

namespace rackcast {

const std::vector<Choice> failure_kinds = {
    {"engine", "the engine's processes end; its GPUs are fine and it starts again on them"},
    {"gpu", "a GPU is lost, and its engine with it: it starts again if the rack has a GPU to spare, else it stays away"},
    {"straggler", "a GPU computes more slowly; every rank of its engine waits for it"},
    {"nic", "a GPU's network card loses bandwidth; what it loses whole is sent again when the card is back"},
    {"nvlink", "a GPU loses NVLink planes: its transfers and its engine's exchanges slow down; a loss of all takes the GPU away"}};
const std::vector<Choice> failure_pools = {{"prefill", "a prefill engine"}, {"decode", "a decode engine"}, {"aggregated", "an aggregated engine"}};
const std::vector<Choice> in_flight_policies = {
    {"retry", "requests of a failed engine start again elsewhere, with the tokens that the user already has as part of the prompt; what a cache still holds is not computed again"},
    {"lose", "requests of a failed engine end with an error"}};
const std::vector<Choice> reload_tiers = {
    {"peer", "weights come from a GPU that holds the same ones, over NVLink"},
    {"host", "from the node's memory, over the GPUs' host links"},
    {"disk", "from the node's drives: 12 GB/s a node (assumed: two PCIe 5 drives)"},
    {"network", "from a file store: 5 GB/s a node (assumed)"}};

void fields(Visitor& v, FailureSpec& f) {
  v.choice("kind", f.kind, failure_kinds, "what fails");
  v.choice("pool", f.pool, failure_pools, "which engines");
  v.field("engine", f.engine, "of the pool, from 0").require(f.engine >= 0, "must be >= 0");
  v.field("gpu", f.gpu, "of the engine, from 0").require(f.gpu >= 0, "must be >= 0");
  v.automatic("at", f.at, "since the measured window opened; auto: at a rate");
  v.automatic("every", f.every, "mean time between failures of the whole pool, each at a random engine and GPU; auto: once, at `at`");
  v.rule("at", (f.at.value() >= 0) != (f.every.value() > 0), "give one of at and every");
  v.rule("every", f.every.value() <= 0 || f.every.value() >= 1, "must be >= 1 s");
  v.automatic("lasts", f.lasts, "straggler, nic, nvlink: until all is as before; auto: for good");
  v.field("share", f.share, "nic, nvlink: of the bandwidth that is lost; straggler: of the speed").require(f.share > 0 && f.share <= 1, "must be in (0, 1]");
  v.rule("lasts", f.kind != FailureKind::nic || f.share < 1 || f.lasts.value() > 0, "a card that is lost whole must come back: give lasts");
  v.rule("share", f.kind != FailureKind::straggler || f.share < 1, "a straggler that loses all its speed is a lost GPU: use kind gpu");
}

void fields(Visitor& v, FailuresSpec& f) {
  v.list("events", f.events, "failures and slow-downs");
  v.choice("in_flight", f.in_flight, in_flight_policies, "what becomes of a failed engine's requests");
  v.field("detection", f.detection, "until a dead engine is noticed; its requests are stuck meanwhile").require(f.detection.value() >= 0, "must be >= 0 s");
  v.field("restart", f.restart, "until an engine is back, besides reading its weights: processes, graphs, communicators (assumed)").require(f.restart.value() >= 0, "must be >= 0 s");
  v.choice("reload", f.reload, reload_tiers, "where a restarting engine reads its weights");
  v.automatic("reload_bandwidth", f.reload_bandwidth, "of that tier, for one node; auto: by tier");
}

}  // namespace rackcast
