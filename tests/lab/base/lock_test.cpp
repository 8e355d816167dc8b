#include "base/lock.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
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

TEST(ALock, IsNotTakenOnAPipeNorWaitedFor) {
  const test::TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "lock").c_str(), 0600), 0);
  EXPECT_FALSE(FileLock::is_held(folder / "lock"));
  EXPECT_TRUE(contains(error_of([&] { FileLock(folder / "lock", "testing"); }), "is no regular file"));
}

TEST(HeldLocks, AreCountedByTheirExtensionAndSignature) {
  const test::TempFolder folder;
  EXPECT_EQ(held_locks(folder / "nowhere", ".claim", "here"), 0);
  const FileLock one(folder / "one.claim", "testing");
  const FileLock two(folder / "two.claim", "testing");
  const FileLock elsewhere(folder / "elsewhere.claim", "testing");
  const FileLock other(folder / "three.lock", "testing");
  for (const auto* lock : {&one, &two, &other}) lock->sign("here");
  elsewhere.sign("another machine");
  { FileLock(folder / "over.claim", "testing", FileLock::After::Keep).sign("here"); }
  EXPECT_EQ(held_locks(folder.path(), ".claim", "here"), 2);
}

}  // namespace
}  // namespace sgdph::lab::lock_test
