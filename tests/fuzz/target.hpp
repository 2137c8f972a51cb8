// A fuzz target: a function over bytes. What it does with them may end in UserError (the input is refused) and in nothing
// else: any other exception, crash, hang or large allocation is a defect. With clang and -DRACKCAST_FUZZ=ON libFuzzer
// drives it; in every other build replay.cpp runs the corpus and seeded changes of it, as a test.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>

#include "sim/base/error.hpp"

namespace rackcast::fuzz {

template <class Body>
int refuse_or_read(const std::uint8_t* data, std::size_t size, Body body) {
  try {
    body(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const UserError&) {
  }
  return 0;
}

// The bytes as a file, for readers that open one themselves; gone at the end.
class AsFile {
 public:
  AsFile(std::string_view bytes, const char* ending) {
    const std::filesystem::path folder = std::filesystem::exists("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path();
    path_ = (folder / ("rackcast-fuzz-" + std::to_string(::getpid()) + ending)).string();
    if (std::FILE* file = std::fopen(path_.c_str(), "wb")) {
      std::fwrite(bytes.data(), 1, bytes.size(), file);
      std::fclose(file);
    }
  }
  ~AsFile() {
    for (const char* also : {"", "-wal", "-shm", "-journal", "-lock"}) std::remove((path_ + also).c_str());
  }
  AsFile(const AsFile&) = delete;
  AsFile& operator=(const AsFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace rackcast::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
