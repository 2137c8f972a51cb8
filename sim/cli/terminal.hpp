// What stdout is: plots go to people's terminals only, colours only where nobody minds (https://no-color.org).
#pragma once

namespace rackcast {

struct Terminal {
  bool is_one = false;   // and no dumb one
  bool colour = false;
  int columns = 80;
};

Terminal stdout_terminal();

}  // namespace rackcast
