// Runs the built program as a user would: arguments in, exit code, stdout and stderr out.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace support {

// A folder that is gone when the test ends.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "rackcast-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(std::filesystem::path(path) / name, std::ios::binary) << content;
    return (std::filesystem::path(path) / name).string();
  }
  std::string path;
};

struct Outcome {
  int code = 0;
  std::string out, err;
};

inline std::string content_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// `command` goes through the shell, with $RACKCAST naming the program.
inline Outcome shell(const std::string& command) {
  const TemporaryFolder folder;
  const std::string all = "RACKCAST='" RACKCAST_PROGRAM "'; export RACKCAST; cd '" RACKCAST_SOURCE_DIR "' && ( " + command + " ) >'" +
                          folder.path + "/out' 2>'" + folder.path + "/err' </dev/null";
  const int status = std::system(all.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content_of(folder.path + "/out"), content_of(folder.path + "/err")};
}

inline Outcome rackcast(const std::string& arguments) { return shell("\"$RACKCAST\" " + arguments); }

}  // namespace support
