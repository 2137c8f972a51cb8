#include "analysis/store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/base/error.hpp"
#include "sim/base/input.hpp"
#include "sim/base/output.hpp"
#include "sim/base/text.hpp"

namespace rackcast {
namespace {

constexpr int schema_version = 1;
constexpr int application_id = 0x726b6374;  // "rkct", in the file's header

constexpr const char* results_table = R"(CREATE TABLE results (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('done', 'refused', 'error')),
  error TEXT NOT NULL,
  scenario TEXT NOT NULL,
  parameters TEXT NOT NULL,
  deployment TEXT NOT NULL,
  metrics TEXT NOT NULL,
  manifest TEXT NOT NULL,
  breakdown TEXT NOT NULL,
  seconds REAL NOT NULL,
  peak_bytes INTEGER NOT NULL))";
constexpr const char* metrics_view = "CREATE VIEW metrics AS SELECT r.id, r.name, m.key AS metric, m.value FROM results r, json_each(r.metrics) m";

constexpr int most_row_bytes = 64 << 20;  // a result is some 100 KiB

constexpr const char* columns =
    "id, key, position, name, status, error, scenario, parameters, deployment, metrics, manifest, breakdown, seconds, peak_bytes";

// A path's problem, told by what to do about it.
[[noreturn]] void fail(const std::string& path, int code, const std::string& detail) {
  std::string rule;
  switch (code & 0xff) {
    case SQLITE_FULL: rule = "the disk is full; every finished result before this one is kept: make room and start again"; break;
    case SQLITE_IOERR: rule = "cannot be read or written (" + detail + "); every finished result before this one is kept"; break;
    case SQLITE_READONLY:
    case SQLITE_PERM: rule = "cannot be written: it or its folder is read-only"; break;
    case SQLITE_CANTOPEN: rule = "cannot be opened: does its folder exist, and may you write there?"; break;
    case SQLITE_NOTADB: rule = "is no result store (not an SQLite file); give another file"; break;
    case SQLITE_CORRUPT: rule = "is damaged (" + detail + "); move it away, or recover it with: sqlite3 FILE .recover"; break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: rule = "is held by another program"; break;
    default: rule = detail;
  }
  throw UserError(path, 0, 0, "", rule);
}

// One prepared statement; columns and parameters by position.
class Statement {
 public:
  Statement(sqlite3* database, const std::string& path, const std::string& sql) : database_(database), path_(path) {
    check(sqlite3_prepare_v2(database, sql.c_str(), -1, &statement_, nullptr));
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(const std::string& text) { check(sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT)); }
  void bind(std::int64_t number) { check(sqlite3_bind_int64(statement_, ++bound_, number)); }
  void bind(double number) { check(sqlite3_bind_double(statement_, ++bound_, number)); }
  bool row() {
    const int code = sqlite3_step(statement_);
    if (code != SQLITE_ROW && code != SQLITE_DONE) check(code);
    read_ = 0;
    return code == SQLITE_ROW;
  }
  std::string text() {
    const int column = read_++;
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
  }
  std::int64_t integer() { return sqlite3_column_int64(statement_, read_++); }
  double real() { return sqlite3_column_double(statement_, read_++); }

 private:
  void check(int code) const {
    if (code != SQLITE_OK) fail(path_, code, sqlite3_errmsg(database_));
  }
  sqlite3* database_;
  const std::string& path_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0, read_ = 0;
};

}  // namespace

struct Store::State {
  std::string path;
  sqlite3* database = nullptr;
  int lock = -1;

  ~State() {
    sqlite3_close(database);
    if (lock >= 0) ::close(lock);
  }

  void run(const char* sql) {
    const int code = sqlite3_exec(database, sql, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) fail(path, code, sqlite3_errmsg(database));
  }
  std::int64_t number(const char* sql) {
    Statement statement(database, path, sql);
    return statement.row() ? statement.integer() : 0;
  }
  std::string text(const char* sql) {
    Statement statement(database, path, sql);
    return statement.row() ? statement.text() : std::string();
  }

  // A lock of the process (not inherited by forks, gone with the process) on a file beside the store. The file stays:
  // removing it would let two writers lock two files of one name.
  void take_lock(const std::function<void(int)>& waiting) {
    lock = ::open((path + "-lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (lock < 0) fail(path, errno == EROFS || errno == EACCES ? SQLITE_READONLY : errno == ENOSPC ? SQLITE_FULL : SQLITE_CANTOPEN, std::strerror(errno));
    struct flock whole{};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (::fcntl(lock, F_SETLK, &whole) == 0) return;
    struct flock holder = whole;
    if (waiting && ::fcntl(lock, F_GETLK, &holder) == 0 && holder.l_type != F_UNLCK) waiting(holder.l_pid);
    while (::fcntl(lock, F_SETLKW, &whole) != 0)
      if (errno != EINTR) throw UserError(path, 0, 0, "", fmt::format("cannot be locked: {}", std::strerror(errno)));
  }

  void open(Mode mode) {
    const int flags = mode == Mode::read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int code = sqlite3_open_v2(path.c_str(), &database, flags, nullptr);
    if (code != SQLITE_OK) fail(path, code, sqlite3_errmsg(database));
    sqlite3_extended_result_codes(database, 1);
    sqlite3_busy_timeout(database, 60'000);
    // A store in a folder that we may not write: readable as long as nobody else writes it.
    if (mode == Mode::read && ::access(std::filesystem::absolute(path).parent_path().c_str(), W_OK) != 0 &&
        ::access((path + "-wal").c_str(), F_OK) != 0) {
      sqlite3_close(database);
      std::string uri = "file:";
      for (const char c : path) uri += c == '%' || c == '?' || c == '#' ? fmt::format("%{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
      code = sqlite3_open_v2((uri + "?immutable=1").c_str(), &database, flags | SQLITE_OPEN_URI, nullptr);
      if (code != SQLITE_OK) fail(path, code, sqlite3_errmsg(database));
    }
    // The file may come from anyone: nothing in it runs, and no row is larger than ours can be.
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_limit(database, SQLITE_LIMIT_LENGTH, most_row_bytes);
  }

  void check_or_make(Mode mode) {
    const std::int64_t version = number("PRAGMA user_version"), application = number("PRAGMA application_id");
    const bool empty = number("SELECT count(*) FROM sqlite_master") == 0;
    if (empty && version == 0 && mode == Mode::write) {
      run("PRAGMA journal_mode=WAL");
      run(fmt::format("BEGIN IMMEDIATE; {}; {}; PRAGMA application_id={}; PRAGMA user_version={}; COMMIT", results_table, metrics_view, application_id, schema_version).c_str());
    } else if (application != application_id) {
      throw UserError(path, 0, 0, "", "is an SQLite file, but no result store of rackcast; give another file");
    } else if (version != schema_version) {
      throw UserError(path, 0, 0, "", fmt::format("has version {} and this program writes version {}; give another file, or use the program that wrote it", version, schema_version));
    } else if (text("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'results'") != results_table ||
               number("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'") > 0) {
      throw UserError(path, 0, 0, "", "has another table of results than this program makes, or triggers; it is not opened");
    } else {
      const std::string health = text("PRAGMA quick_check(1)");
      if (health != "ok") fail(path, SQLITE_CORRUPT, health);
    }
    if (mode == Mode::write) run("PRAGMA synchronous=FULL");
  }
};

Store::Store(const std::string& path, Mode mode, const std::function<void(int)>& waiting) : state_(std::make_unique<State>()) {
  state_->path = path;
  std::error_code ignored;
  if (mode == Mode::read && !std::filesystem::exists(path, ignored)) throw UserError(path, 0, 0, "", "does not exist");
  if (std::filesystem::is_directory(path, ignored)) throw UserError(path, 0, 0, "", "is a folder; give a file such as results.sqlite");
  if (mode == Mode::read) check_input_path(path);
  if (mode == Mode::write) {
    for (const char* suffix : {"", "-lock", "-wal", "-shm", "-journal"}) check_output_path(path + suffix);
    if (std::filesystem::exists(path, ignored) && ::access(path.c_str(), W_OK) != 0) fail(path, SQLITE_READONLY, "");
    state_->take_lock(waiting);
  }
  state_->open(mode);
  state_->check_or_make(mode);
}

Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
const std::string& Store::path() const { return state_->path; }

bool Store::put(const StoredResult& r) {
  Statement statement(state_->database, state_->path,
                      "INSERT INTO results (key, position, name, status, error, scenario, parameters, deployment, metrics, manifest, "
                      "breakdown, seconds, peak_bytes) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (key) DO UPDATE SET "
                      "status=excluded.status, error=excluded.error, metrics=excluded.metrics, manifest=excluded.manifest, "
                      "breakdown=excluded.breakdown, seconds=excluded.seconds, peak_bytes=excluded.peak_bytes "
                      "WHERE results.status = 'error'");
  statement.bind(r.key);
  statement.bind(r.position);
  for (const std::string* text : {&r.name, &r.status, &r.error, &r.scenario, &r.parameters, &r.deployment, &r.metrics, &r.manifest, &r.breakdown})
    statement.bind(*text);
  statement.bind(r.seconds);
  statement.bind(static_cast<std::int64_t>(r.peak_bytes));
  statement.row();
  return sqlite3_changes(state_->database) == 1;
}

std::set<std::string> Store::finished_keys() const {
  std::set<std::string> keys;
  Statement statement(state_->database, state_->path, "SELECT key FROM results WHERE status IN ('done', 'refused')");
  while (statement.row()) keys.insert(statement.text());
  return keys;
}

namespace {

// Rows may come from anywhere; what the program parses or prints must be what it claims to be.
void check_row(const StoredResult& r, const std::string& path) {
  const auto bad = [&](const char* column, const char* rule) { throw UserError(path, 0, 0, fmt::format("row {}, {}", r.id, column), rule); };
  if (first_invalid_utf8(r.name) != std::string::npos) bad("name", "is not UTF-8 text");
  if (first_invalid_utf8(r.error) != std::string::npos) bad("error", "is not UTF-8 text");
  for (const auto& [column, text] : {std::pair{"parameters", &r.parameters}, {"deployment", &r.deployment}, {"metrics", &r.metrics}})
    if (!text->empty() && !nlohmann::json::accept(*text)) bad(column, "is not JSON with finite numbers");
}

StoredResult result_of(Statement& row, const std::string& path) {
  StoredResult r;
  r.id = row.integer();
  r.key = row.text();
  r.position = row.integer();
  for (std::string* text : {&r.name, &r.status, &r.error, &r.scenario, &r.parameters, &r.deployment, &r.metrics, &r.manifest, &r.breakdown})
    *text = row.text();
  r.seconds = row.real();
  r.peak_bytes = static_cast<std::uint64_t>(row.integer());
  check_row(r, path);
  return r;
}

}  // namespace

std::optional<StoredResult> Store::find(const std::string& key) const {
  Statement statement(state_->database, state_->path, fmt::format("SELECT {} FROM results WHERE key = ?", columns));
  statement.bind(key);
  if (!statement.row()) return std::nullopt;
  return result_of(statement, state_->path);
}

std::optional<StoredResult> Store::find_id(std::int64_t id) const {
  Statement statement(state_->database, state_->path, fmt::format("SELECT {} FROM results WHERE id = ?", columns));
  statement.bind(id);
  if (!statement.row()) return std::nullopt;
  return result_of(statement, state_->path);
}

std::vector<StoredResult> Store::all() const {
  std::vector<StoredResult> results;
  Statement statement(state_->database, state_->path, fmt::format("SELECT {} FROM results ORDER BY position, id", columns));
  while (statement.row()) results.push_back(result_of(statement, state_->path));
  return results;
}

std::vector<StoredResult> Store::headlines() const {
  std::vector<StoredResult> results;
  Statement statement(state_->database, state_->path,
                      "SELECT id, key, position, name, status, error, '', parameters, deployment, metrics, '', '', seconds, peak_bytes "
                      "FROM results ORDER BY position, id");
  while (statement.row()) results.push_back(result_of(statement, state_->path));
  return results;
}

}  // namespace rackcast
