#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <utility>

namespace sgdph::lab {

/// Bad input of the user: one line that says what, where, the value and the remedy. `main` alone catches it, prints it
/// and exits with 2.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The machine's fault, such as a full disk: also one line, exit code 1.
class WriteError : public UserError {
 public:
  using UserError::UserError;
};

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw UserError(fmt::format(text, std::forward<Args>(args)...));
}

/// By the errno of what failed: the disk's fault is a WriteError, such as a folder of somebody else the user's.
template <class... Args>
[[noreturn]] void fail_by(int error, fmt::format_string<Args...> text, Args&&... args) {
  if (error == ENOSPC || error == EDQUOT || error == EIO) {
    throw WriteError(fmt::format(text, std::forward<Args>(args)...));
  }
  fail(text, std::forward<Args>(args)...);
}

}  // namespace sgdph::lab
