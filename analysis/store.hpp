// Results of sweeps and plans in one SQLite file: a row a scenario, written in a transaction of its own as soon as it
// ends, so that whatever is killed afterwards, it stays. The key is the hash of everything that decides the result.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace rackcast {

struct StoredResult {
  std::int64_t id = 0;      // by the store
  std::string key;          // content hash, 32 hex digits
  std::int64_t position = 0;  // in the sweep that first ran it
  std::string name;
  std::string status;       // done; refused (the scenario cannot be: kept); error (it crashed, hung...: run again)
  std::string error;        // of refused and error
  std::string scenario;     // resolved YAML, can be run again
  std::string parameters;   // JSON object: dotted key -> number or text
  std::string deployment;   // JSON object
  std::string metrics;      // JSON object, "{}" unless done
  std::string manifest;     // JSON object
  std::string breakdown;    // JSON object
  double seconds = 0;       // wall time
  std::uint64_t peak_bytes = 0;
};

class Store {
 public:
  enum class Mode { read, write };
  // Write: made if it is not there; one writer at a time, others wait (`waiting` is told the writer's process once).
  // UserError when it is damaged, of another version, no store, or cannot be read or written.
  Store(const std::string& path, Mode mode, const std::function<void(int process)>& waiting = {});
  ~Store();
  Store(Store&&) noexcept;

  // False, and nothing changed, when the key has a row that is done or refused; a row in error is replaced.
  bool put(const StoredResult& result);
  std::set<std::string> finished_keys() const;  // done or refused
  std::optional<StoredResult> find(const std::string& key) const;
  std::optional<StoredResult> find_id(std::int64_t id) const;
  std::vector<StoredResult> all() const;  // by position, then id
  // The same without scenario, manifest and breakdown, which are nine tenths of a store.
  std::vector<StoredResult> headlines() const;
  const std::string& path() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rackcast
