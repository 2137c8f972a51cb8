// CSV tables: published results, kernel and module tables, engine step logs. The header decides which.
#include "analysis/published_rows.hpp"
#include "calib/fit_import.hpp"
#include "tests/fuzz/target.hpp"

using namespace rackcast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::refuse_or_read(data, size, [&](std::string_view text) { without_duplicates(read_published(CsvTable::parse("fuzz.csv", text))); });
  return fuzz::refuse_or_read(data, size, [&](std::string_view text) {
    const fuzz::AsFile file(text, ".csv");
    calib::import_points(file.path());
  });
}
