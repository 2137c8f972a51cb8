// Apart from model_shapes.cpp, which needs no YAML.
#include <fstream>
#include <sstream>

#include "calib/model_shapes.hpp"
#include "sim/base/error.hpp"
#include "sim/base/input.hpp"
#include "sim/base/schema_yaml.hpp"

namespace rackcast::calib {

ModelSpec read_model(const std::string& path) {
  check_input_path(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError("cannot read " + path + ": --model takes a model file, e.g. scenarios/models/deepseek-v4-flash.yaml");
  std::stringstream text;
  text << file.rdbuf();
  return read_yaml_as<ModelSpec>({path, text.str()});
}

}  // namespace rackcast::calib
