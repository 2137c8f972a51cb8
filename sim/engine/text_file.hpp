// A text file that grows while the run goes on: collected in memory, written a mebibyte at a time.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

namespace rackcast {

class TextFile {
 public:
  explicit TextFile(const std::string& path);  // UserError when it cannot be written
  fmt::memory_buffer& text() { return buffer_; }
  void flush_if_large();
  void close();                                // UserError when the disk is full
  std::size_t bytes() const { return written_ + buffer_.size(); }

 private:
  void flush();

  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  fmt::memory_buffer buffer_;
  std::size_t written_ = 0;
};

}  // namespace rackcast
