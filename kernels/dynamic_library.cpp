#include "kernels/dynamic_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "sim/base/error.hpp"

namespace rackcast::kernels {
namespace fs = std::filesystem;
namespace {

// site-packages/nvidia/*/lib of the python environments that a GPU node commonly has.
std::vector<std::string> pip_folders() {
  std::vector<fs::path> roots = {"/usr/lib/python3", "/usr/local/lib", "/usr/lib", "/opt/torch/.venv/lib"};
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* prefix = std::getenv(variable)) roots.emplace_back(fs::path(prefix) / "lib");
  std::vector<std::string> found;
  std::error_code ignored;
  for (const fs::path& root : roots)
    for (const auto& python : fs::directory_iterator(root, ignored)) {
      if (python.path().filename().string().rfind("python3", 0) != 0) continue;
      for (const char* packages : {"site-packages", "dist-packages"})
        for (const auto& part : fs::directory_iterator(python.path() / packages / "nvidia", ignored))
          if (fs::is_directory(part.path() / "lib", ignored)) found.push_back((part.path() / "lib").string());
    }
  return found;
}

}  // namespace

DynamicLibrary::DynamicLibrary(const std::vector<std::string>& names, const std::vector<std::string>& folders) {
  std::vector<std::string> places = folders;
  places.emplace_back();  // the loader's own search
  for (const char* usual : {"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"}) places.emplace_back(usual);
  for (std::string& folder : pip_folders()) places.push_back(std::move(folder));
  std::string tried;
  for (const std::string& place : places)
    for (const std::string& name : names) {
      const std::string path = place.empty() ? name : place + "/" + name;
      handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_) {
        path_ = path;
        return;
      }
      tried += "\n  " + path;
    }
  throw Unavailable("none of these could be loaded (name the folder with --library-path):" + tried);
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_) dlclose(handle_);
}

DynamicLibrary::Symbol DynamicLibrary::symbol_or_null(const char* name) const {
  return reinterpret_cast<Symbol>(dlsym(handle_, name));
}

DynamicLibrary::Symbol DynamicLibrary::symbol(const char* name) const {
  const Symbol found = symbol_or_null(name);
  if (!found) throw Unavailable(path_ + " has no " + name);
  return found;
}

}  // namespace rackcast::kernels
