#include "sim/cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace rackcast {

Terminal stdout_terminal() {
  constexpr int narrowest = 40, widest = 120;
  Terminal terminal;
  const char *kind = std::getenv("TERM"), *no_colour = std::getenv("NO_COLOR");
  terminal.is_one = isatty(STDOUT_FILENO) == 1 && kind && std::string_view(kind) != "dumb";
  terminal.colour = terminal.is_one && !(no_colour && *no_colour);
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) terminal.columns = size.ws_col;
  terminal.columns = std::clamp(terminal.columns, narrowest, widest);
  return terminal;
}

}  // namespace rackcast
