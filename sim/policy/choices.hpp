// The policy choices that a scenario names. Their YAML spelling stands in sim/spec/deployment; the enumerator's number
// is its row in the policy's table.
#pragma once

namespace rackcast {

enum class RouterPolicy { round_robin, least_loaded, session_affinity, prefix_affinity, session_hash };
enum class BalancePolicy { count, tokens };  // which DP rank of an engine a request goes to
enum class KvFullPolicy { wait, preempt };   // a request that does not fit waits, or the youngest is put back
enum class EplbPolicy { none, static_placement, periodic_sync, periodic_async, oracle, random_replicas };

}  // namespace rackcast
