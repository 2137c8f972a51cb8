#define BOOST_TEST_MODULE store
#include <boost/test/unit_test.hpp>

#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "analysis/store.hpp"
#include "sim/base/error.hpp"
#include "tests/support/isolated.hpp"

using namespace rackcast;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("rackcast-store-" + std::to_string(getpid()) + "-" + std::to_string(++made));
  Folder() { fs::create_directories(path); }
  ~Folder() {
    fs::permissions(path, fs::perms::owner_all);
    fs::remove_all(path);
  }
  std::string file(const std::string& name = "results.sqlite") const { return (path / name).string(); }
  static inline int made = 0;
};

StoredResult row(const std::string& key, const std::string& status = "done") {
  StoredResult r;
  r.key = key;
  r.name = "n" + key;
  r.status = status;
  r.metrics = status == "done" ? R"({"total_tok_s_gpu": 123.5})" : "{}";
  r.parameters = r.deployment = r.manifest = r.breakdown = "{}";
  r.scenario = "name: x\n";
  r.seconds = 1.5;
  return r;
}

void sql(const std::string& path, const std::string& text) {
  sqlite3* database = nullptr;
  BOOST_REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
  BOOST_REQUIRE(sqlite3_exec(database, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(database);
}

std::string refused(const std::string& path, Store::Mode mode) {
  try {
    Store store(path, mode);
  } catch (const UserError& error) {
    return error.what();
  }
  return "opened";
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_was_put_is_there_when_the_store_is_opened_again) {
  Folder folder;
  {
    Store store(folder.file(), Store::Mode::write);
    BOOST_TEST(store.put(row("a")));
    BOOST_TEST(store.put(row("b", "refused")));
    BOOST_TEST(store.put(row("c", "error")));
  }
  Store store(folder.file(), Store::Mode::read);
  BOOST_TEST(store.all().size() == 3u);
  BOOST_TEST(store.finished_keys() == (std::set<std::string>{"a", "b"}), boost::test_tools::per_element());
  BOOST_TEST(store.find("a")->metrics == row("a").metrics);
  BOOST_TEST(store.find_id(2)->key == "b");
  BOOST_TEST(!store.find("d").has_value());
}

BOOST_AUTO_TEST_CASE(a_finished_row_stays_and_a_row_in_error_is_replaced) {
  Folder folder;
  Store store(folder.file(), Store::Mode::write);
  store.put(row("a"));
  StoredResult other = row("a");
  other.metrics = "{}";
  BOOST_TEST(!store.put(other));
  BOOST_TEST(store.find("a")->metrics == row("a").metrics);
  store.put(row("b", "error"));
  BOOST_TEST(store.put(row("b")));
  BOOST_TEST(store.find("b")->status == "done");
  BOOST_TEST(store.all().size() == 2u);
}

BOOST_AUTO_TEST_CASE(files_that_are_no_store_of_ours_are_refused_and_left_alone) {
  Folder folder;
  std::ofstream(folder.file("text")) << "this is no database, and long enough to be looked at as one by its first bytes";
  BOOST_TEST(refused(folder.file("text"), Store::Mode::write).find("is no result store (not an SQLite file)") != std::string::npos);
  sql(folder.file("other"), "CREATE TABLE t (x)");
  BOOST_TEST(refused(folder.file("other"), Store::Mode::write).find("no result store of rackcast") != std::string::npos);
  { Store store(folder.file(), Store::Mode::write); store.put(row("a")); }
  sql(folder.file(), "PRAGMA user_version=99");
  BOOST_TEST(refused(folder.file(), Store::Mode::write).find("has version 99 and this program writes version 1") != std::string::npos);
  BOOST_TEST(refused(folder.file(), Store::Mode::read).find("has version 99") != std::string::npos);
  sql(folder.file(), "PRAGMA user_version=1");
  BOOST_TEST(Store(folder.file(), Store::Mode::read).all().size() == 1u);
  BOOST_TEST(refused(folder.path.string(), Store::Mode::write).find("is a folder") != std::string::npos);
  BOOST_TEST(refused(folder.file("absent"), Store::Mode::read).find("does not exist") != std::string::npos);
  BOOST_TEST(refused(folder.file("no/such/folder"), Store::Mode::write).find("cannot be opened") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_damaged_store_is_refused_with_what_to_do) {
  Folder folder;
  {
    Store store(folder.file(), Store::Mode::write);
    for (int i = 0; i < 400; ++i) {
      StoredResult r = row(std::to_string(i));
      r.scenario = std::string(2000, 's');
      store.put(r);
    }
  }
  {
    std::fstream file(folder.file(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(3 * 4096);
    file << std::string(100 * 4096, '\x5a');
  }
  const std::string why = refused(folder.file(), Store::Mode::write);
  BOOST_TEST(why.find("is damaged") != std::string::npos, why);
  BOOST_TEST(why.find(".recover") != std::string::npos, why);
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_a_clear_error_and_loses_nothing) {
  Folder folder;
  const std::string text = test::isolated_text([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{300'000, 300'000};  // of any file: stands for the disk
    setrlimit(RLIMIT_FSIZE, &limit);
    Store store(folder.file(), Store::Mode::write);
    int written = 0;
    try {
      for (;; ++written) {
        StoredResult r = row(std::to_string(written));
        r.scenario = std::string(10'000, 's');
        store.put(r);
      }
    } catch (const UserError& error) {
      return std::to_string(written) + " " + error.what();
    }
  });
  const int written = std::stoi(text);
  BOOST_TEST(written > 2);
  BOOST_TEST(text.find("every finished result before this one is kept") != std::string::npos, text);
  Store store(folder.file(), Store::Mode::write);
  BOOST_TEST(store.all().size() == static_cast<std::size_t>(written));
  BOOST_TEST(store.put(row("more")));
}

BOOST_AUTO_TEST_CASE(a_read_only_store_can_be_read_and_not_written) {
  Folder folder;
  { Store store(folder.file(), Store::Mode::write); store.put(row("a")); }
  fs::remove(folder.file() + "-lock");
  fs::permissions(folder.file(), static_cast<fs::perms>(0444));
  fs::permissions(folder.path, static_cast<fs::perms>(0555));
  const std::string seen = test::isolated_text([&] {
    if (getuid() == 0 && setresuid(65534, 65534, 65534) != 0) throw std::runtime_error("cannot become another user");
    return refused(folder.file(), Store::Mode::write) + "\n" + std::to_string(Store(folder.file(), Store::Mode::read).all().size());
  });
  BOOST_TEST(seen == folder.file() + ": cannot be written: it or its folder is read-only\n1");
}

BOOST_AUTO_TEST_CASE(a_second_writer_waits_for_the_first) {
  Folder folder;
  int ready[2], told[2];
  BOOST_REQUIRE(pipe(ready) == 0 && pipe(told) == 0);
  const pid_t first = fork();
  if (first == 0) {
    Store store(folder.file(), Store::Mode::write);
    char c;
    if (write(ready[1], "x", 1) != 1 || read(told[0], &c, 1) != 1) _exit(1);
    usleep(200'000);
    store.put(row("first"));
    kill(getpid(), SIGKILL);  // the lock goes with the process
  }
  char c;
  BOOST_REQUIRE(read(ready[0], &c, 1) == 1);
  int seen = 0;
  Store store(folder.file(), Store::Mode::write, [&](int process) {
    seen = process;
    BOOST_REQUIRE(write(told[1], "x", 1) == 1);
  });
  BOOST_TEST(seen == first);
  BOOST_TEST(store.find("first").has_value());
  waitpid(first, nullptr, 0);
}

BOOST_AUTO_TEST_CASE(whatever_was_put_before_a_kill_is_there_exactly_once) {
  Folder folder;
  std::size_t last = 0;
  for (int round = 0; round < 10; ++round) {
    int ends[2];
    BOOST_REQUIRE(pipe(ends) == 0);
    const pid_t writer = fork();
    if (writer == 0) {
      Store store(folder.file(), Store::Mode::write);
      for (std::size_t i = store.all().size();; ++i) {
        store.put(row(std::to_string(i)));
        if (write(ends[1], "x", 1) != 1) _exit(1);
      }
    }
    close(ends[1]);
    usleep(static_cast<useconds_t>(5'000 + 7'919 * round));
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    std::size_t told = 0;
    for (char buffer[4096];;) {
      const ssize_t count = read(ends[0], buffer, sizeof buffer);
      if (count <= 0) break;
      told += static_cast<std::size_t>(count);
    }
    close(ends[0]);
    Store store(folder.file(), Store::Mode::write);
    const std::size_t now = store.all().size();
    BOOST_TEST(now >= last + told);
    BOOST_TEST(now <= last + told + 1);  // one may have been put and not yet told
    last = now;
  }
  BOOST_TEST(last > 0u);
}

BOOST_AUTO_TEST_CASE(a_row_that_is_not_what_it_claims_is_named_and_refused) {
  const auto refused = [](auto&& change) {
    Folder folder;
    Store store(folder.file(), Store::Mode::write);
    StoredResult bad = row("k");
    change(bad);
    store.put(bad);
    BOOST_CHECK_EXCEPTION(store.find("k"), UserError, [](const UserError& e) { return std::string(e.what()).find("row 1, ") != std::string::npos; });
    BOOST_CHECK_THROW(store.headlines(), UserError);
  };
  refused([](StoredResult& r) { r.metrics = "{"; });
  refused([](StoredResult& r) { r.metrics = R"({"total_tok_s_gpu":1e999})"; });
  refused([](StoredResult& r) { r.deployment = "x"; });
  refused([](StoredResult& r) { r.error = "\xff"; });
}
