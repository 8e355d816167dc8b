#include "base/lock.h"

#include <gtest/gtest.h>

#include "lab/fetch/scratch.h"

namespace sgdph::lab::lock_test {
namespace {

using test::contains;
using test::error_of;
using Names = std::vector<std::string>;

TEST(ALock, EndsWithItsHolder) {
  const test::TempFolder scratch;
  { const FileLock lock(scratch / "lock", "testing"); }
  EXPECT_EQ(scratch.names(), Names{});
  const FileLock again(scratch / "lock", "testing");
  EXPECT_TRUE(contains(error_of([&] { FileLock(scratch / "lock", "testing"); }), "another process is testing"));
  EXPECT_EQ(scratch.names(), Names{"lock"});
}

}  // namespace
}  // namespace sgdph::lab::lock_test
