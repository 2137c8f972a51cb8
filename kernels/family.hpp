// The host half of a kernel family: what shapes it has, and what work a shape is. Builds everywhere, knows no CUDA.
// A family is one <name>.cpp with this, one <name>.cu with its Launcher (launcher.hpp), and one row in families.def.
// Its CPU reference in double is a plain function in <name>.hpp.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/shape.hpp"

namespace rackcast::kernels {

struct Axis {
  std::string name;
  std::string meaning;
};

// quick: the points a fit needs, minutes a GPU. full: every regime. bench: the shapes of bars(). sanitize: at most a few
// small shapes a family that touch every code path, never timed.
enum class Grid { quick, full, bench, sanitize };

// What a shape asks of the machine, whatever kernel does it: each input read once, each output written once.
struct Work {
  double flop = 0;         // useful
  double flop_padded = 0;  // with the padding that the tiling cannot avoid; 0 = same as flop
  double bytes_hbm = 0;
  double bytes_link = 0;   // over NVLink or PCIe
  double touched = 0;      // experts touched, blocks gathered...: the family says
};

// A figure that a kernel should reach on the H200, and what others have published for it.
enum class Quantity { tflops, microseconds, hbm_gb_s };
struct Bar {
  Shape shape;
  std::string cache = "cold";
  Quantity quantity = Quantity::tflops;
  double at_least = 0;
  double wanted = 0;
  std::string published;  // "410 TFLOPS H800 (FlashMLA)", empty where nobody has
};

class Family {
 public:
  virtual ~Family() = default;
  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;  // one line for `list`
  virtual std::string math(const Shape& shape) const = 0;  // the type of the multiplication: bf16, fp8, none...
  virtual std::vector<Axis> axes() const = 0;
  virtual std::vector<Shape> grid(Grid grid) const = 0;    // no duplicates; same every time
  virtual Work work(const Shape& shape) const = 0;
  virtual std::vector<Bar> bars() const { return {}; }
};

std::span<const Family* const> families();             // in the order of families.def
#define RACKCAST_FAMILY(name) const Family& name##_family();
#include "kernels/families.def"
#undef RACKCAST_FAMILY
const Family* find_family(std::string_view name);      // null when there is none

}  // namespace rackcast::kernels
