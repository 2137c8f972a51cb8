// Quantities as text: "5 ms", "64 GiB", "900 GB/s", "0.15 USD/Mtok". KB, MB, GB, TB are powers of 1000, KiB... of 1024;
// rates of bits are spelled Gbit/s. A bare number is refused, except 0.
#pragma once
#include <string>
#include <string_view>

#include "sim/base/schema.hpp"
#include "sim/base/text.hpp"

namespace rackcast {

// To base units (s, B, flop, USD, J and their products).
Parsed<double> parse_quantity(std::string_view text, const Dimension& dimension);

// The unit that gives the most readable number among those that read back to exactly the same value.
std::string format_quantity(double base_units, const Dimension& dimension);

// "16K" = 16384, "1M" = 1048576.
Parsed<Tokens> parse_tokens(std::string_view text);
std::string format_tokens(Tokens tokens);

// An example for documentation and messages: "5 ms" for a time.
std::string unit_example(const Dimension& dimension);

}  // namespace rackcast
