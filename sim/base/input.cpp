#include "sim/base/input.hpp"

#include <filesystem>

#include "sim/base/error.hpp"

namespace fs = std::filesystem;

namespace rackcast {

void check_input_path(const std::string& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (fs::exists(status) && !fs::is_regular_file(status)) throw UserError(path, 0, 0, "", "is not a plain file");
}

}  // namespace rackcast
