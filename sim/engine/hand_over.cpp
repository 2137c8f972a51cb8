// The hand-over of computed prompts from prefill to decode engines.
#include <algorithm>

#include "sim/engine/simulation.hpp"

namespace rackcast {

// First come, first served: a prompt that finds no room holds those behind it.
void Simulation::start_hand_overs() {
  decode_room_changed_ = false;
  while (!handing_over_.empty()) {
    const RequestId id = handing_over_.head;
    if (!assign_decode(id)) return;
    handing_over_.erase(arena_, id);
    const Request& request = arena_[id];
    const double tokens = request.prompt_tokens, runs = static_cast<double>(std::max<std::size_t>(1, request.ask.runs.size()));
    const double bytes = transfer_.bytes(tokens) + transfer_.fixed_bytes();
    const double descriptors = transfer_.descriptors(tokens, runs) + transfer_.fixed_descriptors();
    const Link link = link_of(id);
    const double posting_s = transfer_.cost(link.nvlink).posting_s(descriptors);
    const std::uint32_t move = moves_.add({MoveKind::hand_over, id, request.hand, bytes, descriptors, posting_s});
    const double ready_s = now_s_ + options_.transfer.control_s;
    const bool pull = options_.transfer.mode == KvTransferMode::pull;
    if (options_.transfer.posting == KvPosting::thread)
      queue_.add(transfer_.posted_by_thread_s(ready_s, pull ? link.to : link.from, posting_s) + link.latency_s, EventKind::transfer_posted, move);
    else
      queue_.add(ready_s, EventKind::transfer_ready, move);
    if (!in_window()) continue;
    ++outcome_.transfer.count;
    outcome_.transfer.bytes += bytes;
    outcome_.transfer.descriptors += descriptors;
    outcome_.transfer.posting_s += posting_s;
    outcome_.transfer.wait_s += now_s_ - request.computed_s;
  }
}

Simulation::Link Simulation::link_of(RequestId id) const {
  const Request& request = arena_[id];
  Link link{gpu_of(request.prefill_engine, request.prefill_rank, id), gpu_of(request.decode_engine, request.decode_rank, id), false, 0};
  link.nvlink = topology_.same_domain(link.from, link.to);
  link.latency_s = link.nvlink ? 0 : options_.transfer.nic_latency_s;
  return link;
}

// The decode rank with least to do in the prompt's own rack, else in any.
bool Simulation::assign_decode(RequestId id) {
  Request& request = arena_[id];
  const ServingEngine& kind = engines_.back();
  const std::int64_t need = kind.decode_need(request);
  const auto pick = [&](std::size_t begin, std::size_t end) {
    const int best = pick_decode_rank({decode_loads_.data() + begin, end - begin}, options_.router_options.balance,
                                      kind.shape().limits.requests, need);
    return best < 0 ? best : best + static_cast<int>(begin);
  };
  const auto [begin, end] = decode_of_rack_[places_[request.prefill_engine].rack];
  int best = begin < end ? pick(begin, end) : -1;
  if (best < 0 && options_.topology.racks > 1) best = pick(0, decode_loads_.size());
  if (best < 0) return false;
  const Target target = decode_targets_[static_cast<std::size_t>(best)];
  engines_[target.engine].reserve_decode(id, target.rank);
  request.decode_reserved = true;
  request.reserved_s = now_s_;
  return true;
}

// push_layerwise: what an iteration that begins now sends while it runs. A chunk's rows leave in `groups` equal parts, as
// KV-writing layers, taken as evenly spread over the iteration, are done; rows that the cache held leave at once.
void Simulation::send_layers(ServingEngine& engine, double duration_s) {
  const std::uint32_t groups = options_.transfer.groups;
  for (const ServingEngine::Chunk& chunk : engine.chunks()) {
    Request& request = arena_[chunk.id];
    if (!request.decode_reserved) {
      if (!handing_over_.empty() || request.tokens_left <= 1 || !assign_decode(chunk.id)) continue;  // sent when it is computed
      send_part(chunk.id, now_s_, request.computed_tokens - chunk.tokens, 1, 0);
    } else if (!request.sends_layers) {
      continue;
    }
    request.sends_layers = true;
  }
  for (std::uint32_t g = 1; g <= groups; ++g)
    for (const ServingEngine::Chunk& chunk : engine.chunks()) {
      const Request& request = arena_[chunk.id];
      if (!request.sends_layers) continue;
      const bool last = request.computed_tokens == request.prompt_tokens;
      send_part(chunk.id, now_s_ + duration_s * g / groups, chunk.tokens, 1.0 / groups, last ? 1.0 / groups : 0);
    }
}

// `share` of the rows of `tokens`, and of what a request has besides, computed at ready_s.
void Simulation::send_part(RequestId id, double ready_s, double tokens, double share, double fixed_share) {
  Request& request = arena_[id];
  const double runs = static_cast<double>(std::max<std::size_t>(1, request.ask.runs.size()));
  const double bytes = transfer_.bytes(tokens) * share + transfer_.fixed_bytes() * fixed_share;
  const double descriptors = transfer_.descriptors(tokens, runs) * share + transfer_.fixed_descriptors() * fixed_share;
  if (bytes <= 0) return;
  const Link link = link_of(id);
  const double posting_s = transfer_.cost(link.nvlink).posting_s(descriptors);
  const std::uint32_t move = moves_.add({MoveKind::part, id, request.hand, bytes, descriptors, posting_s});
  ++request.parts_under_way;
  ready_s = std::max(ready_s, request.reserved_s + options_.transfer.control_s);
  queue_.add(transfer_.posted_by_thread_s(ready_s, link.from, posting_s) + link.latency_s, EventKind::transfer_posted, move);
  if (!in_window()) return;
  outcome_.transfer.bytes += bytes;
  outcome_.transfer.descriptors += descriptors;
  outcome_.transfer.posting_s += posting_s;
}

// pull: the descriptors of a move are due on the decode rank's host.
void Simulation::transfer_ready(std::uint32_t slot) {
  if (stale_free(slot)) return;
  const Move& move = moves_[slot];
  const Request& request = arena_[move.request];
  engines_[request.decode_engine].post(request.decode_rank, slot, move.posting_s);
  wake(request.decode_engine);
}

void Simulation::transfer_posted(std::uint32_t slot) {
  if (stale_free(slot)) return;
  const Move& move = moves_[slot];
  const Link link = link_of(move.request);
  start_flow(slot, topology_.route(link.from, link.to));
}

void Simulation::start_flow(std::uint32_t slot, std::span<const LinkId> path) {
  ++outcome_.flows;
  moves_.started(slot, now_s_);
  const auto bytes = static_cast<std::uint64_t>(std::max(1.0, std::round(moves_[slot].bytes)));
  if (!network_.start(now_s_, path, bytes, slot)) stopped_.push_back(slot);
}

void Simulation::start_host_flow(std::uint32_t slot) {
  const Request& request = arena_[moves_[slot].request];
  start_flow(slot, topology_.host_route(gpu_of(request.prefill_engine, request.prefill_rank, moves_[slot].request)));
}

// Its link went down: it is sent again from the start when that is back.
void Simulation::flow_stopped(std::uint32_t slot) {
  if (!stale_free(slot)) stopped_.push_back(slot);
}

bool Simulation::stale_free(std::uint32_t slot) {
  if (!stale(moves_[slot])) return false;
  moves_.remove(slot);
  return true;
}

void Simulation::flow_done(std::uint32_t slot) {
  if (stale_free(slot)) return;
  const Move& move = moves_[slot];
  if (detailed_) tell_moved(move);
  if (move.kind == MoveKind::host_load) {
    host_load_done(move.request);
    return moves_.remove(slot);
  }
  ++outcome_.transfer_moves;
  outcome_.transfer_outside.add("kv_transfer", options_.transfer.range.exits(launch_work(0, 0, move.bytes, 0, move.descriptors)), 1);
  const double execute_s = move.descriptors * transfer_.cost(link_of(move.request).nvlink).execute_s;
  if (execute_s > 0) queue_.add(now_s_ + execute_s, EventKind::transfer_done, slot);
  else transfer_done(slot);
}

void Simulation::transfer_done(std::uint32_t slot) {
  const Move move = moves_[slot];
  moves_.remove(slot);
  if (stale(move)) return;
  if (move.kind == MoveKind::hand_over) return hand_over_done(move.request);
  Request& request = arena_[move.request];
  --request.parts_under_way;
  if (request.state == RequestState::handing_over && request.parts_under_way == 0) hand_over_done(move.request);
}

void Simulation::hand_over_done(RequestId id) {
  Request& request = arena_[id];
  if (in_window()) {
    ++outcome_.transfer.ended;
    outcome_.transfer.time_s += now_s_ - request.computed_s;
    if (request.sends_layers) {
      ++outcome_.transfer.count;
      outcome_.transfer.reserved_ahead_s += request.computed_s - request.reserved_s;
    }
  }
  engines_[request.prefill_engine].leave(id);
  wake(request.prefill_engine);
  request.seeded = options_.transfer.first_token == FirstToken::seeded;
  if (request.seeded) {
    if (request.first_token_s == not_yet_s) request.first_token_s = now_s_;
  } else {  // the decode engine gives this token again
    ++request.tokens_left;
    --request.tokens_from_prefill;
  }
  engines_[request.decode_engine].join(id);
  wake(request.decode_engine);
}

void Simulation::answer_started(RequestId id) {
  Request& request = arena_[id];
  if (request.first_token_s == not_yet_s) request.first_token_s = now_s_;
}

}  // namespace rackcast
