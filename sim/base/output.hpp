// Files that we write. Never through a symbolic link or into something that is no plain file: a folder that someone
// else may write to must not turn `--out` into a way to overwrite other files.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace rackcast {

// Writes a temporary file beside it and renames, so that a reader sees the old or the new content, never half of it.
// UserError when path is a link, no plain file, or cannot be written.
void write_output_file(const std::string& path, std::string_view content);

// For files that are written piece by piece: UserError when path is there and is a link or no plain file.
void check_output_path(const std::string& path);

// UserError when path is one of the files that were read: a slip of the hand must not cost a store or a trace.
void refuse_overwriting(const std::string& path, const std::vector<std::string>& inputs);

// Makes the folder (and its parents) if it is not there; UserError when it is a link or no folder. Returns path.
std::string make_output_folder(const std::string& path);

}  // namespace rackcast
