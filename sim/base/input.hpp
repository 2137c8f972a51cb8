// Files that we read. A named pipe that nobody writes to would hold a run for ever, and /dev/zero never ends.
#pragma once
#include <string>

namespace rackcast {

// UserError when path is there and is no plain file. What is not there is left to who opens it.
void check_input_path(const std::string& path);

}  // namespace rackcast
