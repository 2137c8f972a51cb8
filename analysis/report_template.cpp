// The built page as bytes of the program, so that a report needs no file beside it.
#include "analysis/report_page.hpp"

// clang-format off
__asm__(
    ".section .rodata\n"
    ".global rackcast_report_template\n"
    ".global rackcast_report_template_end\n"
    "rackcast_report_template:\n"
    ".incbin \"" RACKCAST_REPORT_TEMPLATE "\"\n"
    "rackcast_report_template_end:\n"
    ".byte 0\n"
    ".previous\n");
// clang-format on

extern "C" const char rackcast_report_template[];
extern "C" const char rackcast_report_template_end[];

namespace rackcast {

std::string_view report_template() {
  return {rackcast_report_template, static_cast<std::size_t>(rackcast_report_template_end - rackcast_report_template)};
}

}  // namespace rackcast
