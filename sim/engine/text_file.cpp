#include "sim/engine/text_file.hpp"

#include "sim/base/error.hpp"
#include "sim/base/output.hpp"

namespace rackcast {

namespace {

constexpr std::size_t flush_bytes = std::size_t{1} << 20;

}  // namespace

TextFile::TextFile(const std::string& path) : path_(path) {
  check_output_path(path);
  file_.reset(std::fopen(path.c_str(), "w"));
  if (!file_) throw UserError(path + ": cannot be written");
}

void TextFile::flush_if_large() {
  if (buffer_.size() >= flush_bytes) flush();
}

void TextFile::flush() {
  if (std::fwrite(buffer_.data(), 1, buffer_.size(), file_.get()) != buffer_.size())
    throw UserError(path_ + ": cannot be written (disk full?)");
  written_ += buffer_.size();
  buffer_.clear();
}

void TextFile::close() {
  if (!file_) return;
  flush();
  if (std::fflush(file_.get()) != 0) throw UserError(path_ + ": cannot be written (disk full?)");
  file_.reset();
}

}  // namespace rackcast
