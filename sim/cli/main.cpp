#include <fmt/core.h>

int main() {
  fmt::print(stderr, "rackcast: no verb yet\n");
  return 2;
}
