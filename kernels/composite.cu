// Composite families on the GPU: their parts' cases behind one another.
#include "kernels/composite.hpp"

#include <algorithm>

#include "kernels/device.hpp"
#include "kernels/launcher.hpp"
#include "sim/base/error.hpp"

namespace rackcast::kernels {
namespace {

const Launcher& launcher_of(const std::string& name) {
  for (const Launcher* launcher : launchers())
    if (launcher->family().name() == name) return *launcher;
  throw InternalError("no family " + name);
}

// Blackwell has no 128-block fp8 in cuBLASLt: the same weights as MXFP8 there.
Part for_gpu(Part part, const GpuEnvironment& gpu) {
  if (part.shape.has("math") && part.shape.text("math") == "fp8_block" && gpu.cc_major >= 10) part.shape.set("math", "mxfp8");
  return part;
}

class CompositeCase final : public Case {
 public:
  CompositeCase(const GpuEnvironment& gpu, const std::vector<Part>& parts, const PrepareOptions& options) {
    PrepareOptions each = options;
    each.max_sets = std::min(options.max_sets, 4);  // a layer's parts together exceed the cache several times
    for (const Part& given : parts) {
      const Part part = for_gpu(given, gpu);
      const Launcher& launcher = launcher_of(part.family);
      const std::vector<std::string> names = launcher.implementations(gpu, part.shape);
      if (names.empty()) throw Unavailable("no " + part.family + " for " + part.shape.key());
      const std::string key = part.family + ' ' + part.shape.key();
      const auto known = std::find(keys_.begin(), keys_.end(), key);
      const auto place = static_cast<std::size_t>(known - keys_.begin());
      order_.push_back({place, static_cast<int>(std::count_if(order_.begin(), order_.end(), [&](const Step& step) { return step.place == place; }))});
      if (known != keys_.end()) continue;
      each.seed += 17;
      keys_.push_back(key);
      cases_.push_back(launcher.prepare(gpu, part.shape, names.front(), each));
    }
  }
  int sets() const override {
    int most = 1;
    for (const auto& one : cases_) most = std::max(most, one->sets());
    return most;
  }
  void launch(int set, Stream stream) override {
    for (const Step& step : order_) {
      Case& one = *cases_[step.place];
      one.launch((set + step.occurrence) % one.sets(), stream);
    }
  }
  CheckResult check(const CheckOptions& options) override {
    CheckResult all = cases_.front()->check(options);
    for (std::size_t i = 1; i < cases_.size() && all.ok; ++i) {
      const CheckResult one = cases_[i]->check({options.seed + i, false});
      all = one.tolerance > 0 ? both(all, one) : CheckResult{all.ok && one.ok, all.rel_l2, all.max_abs, all.tolerance, one.ok ? all.note : one.note};
    }
    return all;
  }
  std::string detail() const override { return "parts=" + std::to_string(order_.size()); }

 private:
  struct Step {
    std::size_t place;  // in cases_
    int occurrence;     // how many equal parts came before
  };
  std::vector<std::string> keys_;
  std::vector<std::unique_ptr<Case>> cases_;
  std::vector<Step> order_;
};

class CompositeLauncher final : public Launcher {
 public:
  explicit CompositeLauncher(const Family& family) : family_(family) {}
  const Family& family() const override { return family_; }
  std::vector<std::string> implementations(const GpuEnvironment&, const Shape&) const override { return {"graph"}; }
  std::unique_ptr<Case> prepare(const GpuEnvironment& gpu, const Shape& shape, const std::string&, const PrepareOptions& options) const override {
    return std::make_unique<CompositeCase>(gpu, static_cast<const CompositeFamily&>(family_).parts(shape), options);
  }

 private:
  const Family& family_;
};

}  // namespace

const Launcher& attention_layer_launcher() {
  static const CompositeLauncher launcher(attention_layer_family());
  return launcher;
}
const Launcher& draft_block_launcher() {
  static const CompositeLauncher launcher(draft_block_family());
  return launcher;
}
const Launcher& decode_layer_launcher() {
  static const CompositeLauncher launcher(decode_layer_family());
  return launcher;
}

}  // namespace rackcast::kernels
