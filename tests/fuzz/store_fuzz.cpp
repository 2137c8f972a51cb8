// Result stores from elsewhere: opened for reading, every row read.
#include "analysis/store.hpp"
#include "tests/fuzz/target.hpp"

using namespace rackcast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refuse_or_read(data, size, [&](std::string_view text) {
    const fuzz::AsFile file(text, ".sqlite");
    const Store store(file.path(), Store::Mode::read);
    store.all();
    store.finished_keys();
  });
}
