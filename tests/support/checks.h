#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "support/temp_folder.h"

namespace sgdph::test {

/// What the UserError says that the action throws, which is one line; empty if it throws none.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const lab::UserError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
  }
  return "";
}

/// A name as GoogleTest takes it for a case: "sgd-ph" is sgd_ph.
inline std::string test_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.' || c == '/'; }, '_');
  return name;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace sgdph::test
