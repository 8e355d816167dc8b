#include "base/lock.h"

#include <gtest/gtest.h>

#include <utility>

#include "support/checks.h"

namespace sgdph::lab::lock_test {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::error_of;

TEST(ALock, EndsWithItsHolder) {
  const test::TempFolder folder;
  { const FileLock lock(folder / "lock", "testing"); }
  EXPECT_FALSE(fs::exists(folder / "lock"));
  const FileLock again(folder / "lock", "testing");
  EXPECT_TRUE(contains(error_of([&] { FileLock(folder / "lock", "testing"); }), "another process is testing"));
  EXPECT_TRUE(fs::exists(folder / "lock"));
}

TEST(ALock, MayLeaveItsFile) {
  const test::TempFolder folder;
  { const FileLock lock(folder / "lock", "testing", FileLock::After::Keep); }
  EXPECT_TRUE(fs::exists(folder / "lock"));
  EXPECT_FALSE(FileLock::is_held(folder / "lock"));
  const FileLock again(folder / "lock", "testing");
}

TEST(ALock, IsSeenByThoseWhoAsk) {
  const test::TempFolder folder;
  EXPECT_FALSE(FileLock::is_held(folder / "lock"));
  FileLock lock(folder / "lock", "testing");
  EXPECT_TRUE(FileLock::is_held(folder / "lock"));
  {
    const FileLock moved(std::move(lock));
    EXPECT_TRUE(FileLock::is_held(folder / "lock"));
  }
  EXPECT_FALSE(FileLock::is_held(folder / "lock"));
}

}  // namespace
}  // namespace sgdph::lab::lock_test
