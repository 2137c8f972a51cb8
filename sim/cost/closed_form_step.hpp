// One path of an engine at one clock; make_step_model() puts them together.
#pragma once
#include <memory>

#include "sim/cost/step_model.hpp"

namespace rackcast {

std::unique_ptr<StepModel> make_closed_form_step(const StepContext& context);

}  // namespace rackcast
