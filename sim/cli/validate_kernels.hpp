// Kernel times of published tables against what cost files say: a GPU from its own fits, or from another GPU's.
#pragma once
#include <string>

#include "analysis/validation.hpp"
#include "sim/base/catalog.hpp"
#include "sim/cli/suite.hpp"

namespace rackcast {

// Appends one item a kernel point; its metric is the cost family (with "from -> to" before it for transfers).
void add_kernels(const SuiteSpec& spec, const std::string& data_folder, const Catalog& catalog, ValidationSuite& suite);

}  // namespace rackcast
