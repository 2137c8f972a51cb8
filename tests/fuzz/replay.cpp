// Stands in for libFuzzer: runs every file of a corpus folder, then seeded changes of them (bytes set, cut out, doubled,
// two files joined). RACKCAST_FUZZ_ROUNDS changes a file, 40 if unset. Any way to end but "read" or "refused" fails.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <vector>

#include "tests/fuzz/target.hpp"

namespace {

using Bytes = std::vector<std::uint8_t>;

void change(Bytes& bytes, const Bytes& other, std::mt19937_64& random) {
  const auto any = [&](std::size_t below) { return static_cast<std::size_t>(random() % std::max<std::size_t>(1, below)); };
  const auto at = [&](std::size_t offset) { return bytes.begin() + static_cast<std::ptrdiff_t>(offset); };
  const std::size_t from = any(bytes.size()), count = std::min(bytes.size() - from, any(64));
  switch (random() % 5) {
    case 0: if (!bytes.empty()) bytes[from] = static_cast<std::uint8_t>(random()); break;
    case 1: bytes.erase(at(from), at(from + count)); break;
    case 2: { const Bytes piece(at(from), at(from + count)); bytes.insert(at(from), piece.begin(), piece.end()); break; }
    case 3: bytes.resize(from); bytes.insert(bytes.end(), other.begin() + static_cast<std::ptrdiff_t>(any(other.size())), other.end()); break;
    default: { const char* const odd[] = {"-1", "1e999", "nan", "0", "\"", "[", "{", ":", ",", "\n", "99999999999999999999"};
               const std::string_view piece = odd[any(std::size(odd))]; bytes.insert(at(from), piece.begin(), piece.end()); }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> paths;
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(argv[i]))
      if (entry.is_regular_file()) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) {
    std::cerr << "no corpus\n";
    return 1;
  }
  std::vector<Bytes> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  const char* const asked = std::getenv("RACKCAST_FUZZ_ROUNDS");
  const long rounds = asked != nullptr ? std::atol(asked) : 40;
  std::mt19937_64 random(7);
  double worst_s = 0;
  std::size_t runs = 0;
  for (std::size_t i = 0; i < corpus.size(); ++i)
    for (long round = 0; round <= rounds; ++round) {
      Bytes bytes = corpus[i];
      for (long changes = round == 0 ? 0 : 1 + static_cast<long>(random() % 6); changes > 0; --changes)
        change(bytes, corpus[random() % corpus.size()], random);
      const std::clock_t start = std::clock();
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
      const double took_s = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      worst_s = std::max(worst_s, took_s);
      ++runs;
    }
  std::cout << runs << " inputs from " << corpus.size() << " files, the slowest " << worst_s << " s\n";
  return worst_s < 20 ? 0 : 1;
}
