#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sgdph::lab {

/// The whole file; a UserError names it if it cannot be read. What is no regular file (a pipe, a device) is refused, so
/// that nothing in a folder of somebody else is waited for.
std::string read_file(const std::filesystem::path& path);

/// The same for a path that the user named, which may be a pipe.
std::string read_named_file(const std::filesystem::path& path);

/// Refuses a path that is there and no regular file.
void check_regular(const std::filesystem::path& path);

/// A file open for writing. What cannot be written whole is a WriteError that names the file.
class OutputFile {
 public:
  enum class Mode {
    Create,   ///< refused if it is there
    Replace,  ///< emptied if it is there
    Append
  };
  /// If something fails, `remark` ends the message, such as "; what is there can be continued"; `name` is told in place
  /// of the path.
  OutputFile(std::filesystem::path path, Mode mode, std::string remark = "", std::string name = "");
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  const std::filesystem::path& path() const { return path_; }
  /// So many bytes will come: told when the disk is full.
  void expect(size_t bytes) { expected_ = bytes; }
  void write(std::string_view bytes);
  /// All is on the disk when it returns.
  void sync();
  /// The same, and the file is closed.
  void finish();
  /// Tells others that somebody is writing; false if the file was taken away in the meantime.
  bool hold() const;

 private:
  [[noreturn]] void refuse() const;

  std::filesystem::path path_;
  std::string remark_;
  std::string name_;
  size_t expected_ = 0;
  size_t written_ = 0;
  int file_ = -1;
};

/// Gives a finished file or folder its name, in place of a file of that name; the folder's entry is on the disk when it
/// returns.
void put_in_place(const std::filesystem::path& from, const std::filesystem::path& to);

/// A file that is there whole or not at all: written beside its target and put in place only when all is on the disk. A
/// crash or a full disk leaves what was there before, and an exception nothing half-written. Any number of processes
/// may write the same file: each has a name of its own for it (TARGET.PID-NUMBER.new) until it is in place, and the
/// last one stays. What is there under such a name is never written to.
class NewFile {
 public:
  explicit NewFile(std::filesystem::path target);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  void expect(size_t bytes) { file_.expect(bytes); }
  void write(std::string_view bytes) { file_.write(bytes); }
  void put_in_place();

 private:
  std::filesystem::path target_;
  OutputFile file_;
  bool placed_ = false;
};

/// Takes away what killed processes left of a file half-written; what is still being written stays.
void remove_half_written(const std::filesystem::path& target);
/// The same for every file of a folder.
void remove_all_half_written(const std::filesystem::path& folder);

/// Writes the pieces one after another to a NewFile, for a path that the user named: a symbolic link stays one, and
/// what is no file (a pipe, /dev/stdout) is written to as it is.
void write_file_atomically(const std::filesystem::path& path, const std::vector<std::string_view>& pieces);

/// The same for a file of our own in a folder that may be anybody's: a link or pipe of that name is replaced, so that
/// nothing outside the folder changes.
void write_own_file(const std::filesystem::path& path, const std::vector<std::string_view>& pieces);

/// Whether it is there and neither a file nor a folder: a pipe, a terminal, a device.
bool is_stream(const std::filesystem::path& path);

/// Adds the bytes to the end of a file that exists and is no link; on the disk when it returns. What cannot be written
/// whole is taken back.
void append_to_file(const std::filesystem::path& path, std::string_view bytes);

/// Makes the folder and those above it, and refuses one that cannot be written to.
void make_writable_folder(const std::filesystem::path& path);

}  // namespace sgdph::lab
