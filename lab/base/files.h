#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sgdph::lab {

/// The whole file; a UserError names it if it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// Writes the pieces one after another to a new file and puts it in place of `path` only when all is on the disk: a
/// crash or a full disk leaves the previous file as it was and nothing half-written. A symbolic link stays one. What is
/// no file (a pipe, /dev/stdout) is written to as it is. A UserError says what failed.
void write_file_atomically(const std::filesystem::path& path, const std::vector<std::string_view>& pieces);

/// Whether it is there and neither a file nor a folder: a pipe, a terminal, a device.
bool is_stream(const std::filesystem::path& path);

/// Adds the bytes to the end of a file that exists; on the disk when it returns. What cannot be written whole is taken
/// back.
void append_to_file(const std::filesystem::path& path, std::string_view bytes);

/// Makes the folder and those above it, and refuses one that cannot be written to.
void make_writable_folder(const std::filesystem::path& path);

}  // namespace sgdph::lab
