// A shared library opened at run time: rackcast-calib starts on a machine that has only the driver.
#pragma once
#include <string>
#include <vector>

namespace rackcast::kernels {

class DynamicLibrary {
 public:
  // Tries folders first, then the loader's own places, then pip's nvidia folders under the usual site-packages.
  // Unavailable, with every place tried, when it is nowhere.
  DynamicLibrary(const std::vector<std::string>& names, const std::vector<std::string>& folders);
  ~DynamicLibrary();
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;
  const std::string& path() const { return path_; }  // the name or path that worked

  template <typename Function>
  Function* function(const char* name) const {  // Unavailable when the library lacks it
    return reinterpret_cast<Function*>(symbol(name));
  }
  template <typename Function>
  Function* function_or_null(const char* name) const {
    return reinterpret_cast<Function*>(symbol_or_null(name));
  }

 private:
  using Symbol = void (*)();
  Symbol symbol(const char* name) const;
  Symbol symbol_or_null(const char* name) const;
  void* handle_ = nullptr;  // dlopen's own type
  std::string path_;
};

}  // namespace rackcast::kernels
