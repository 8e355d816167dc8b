#include "base/machine.h"

#include <gtest/gtest.h>

#include <sched.h>
#include <cstdlib>
#include <fstream>

#include "support/checks.h"

namespace sgdph::lab::machine_test {
namespace {

double spent = 0;

TEST(ACoreWatch, TellsOfWaitingThatIsWorthAWordAndOnlyOnceInAWhile) {
  spent = 100;
  CoreWatch watch(0, [] { return std::optional(spent); });
  spent += 15;
  EXPECT_FALSE(watch.slowed(19)) << "too early to tell";
  EXPECT_DOUBLE_EQ(watch.slowed(30).value_or(0), 0.5);
  spent += 10;
  EXPECT_FALSE(watch.slowed(31));
  EXPECT_FALSE(watch.slowed(80)) << "a fifth of the time";
  spent += 30;
  EXPECT_DOUBLE_EQ(watch.slowed(120).value_or(0), 0.75);
}

TEST(ACoreWatch, SaysNothingWhereTheSystemDoesNot) {
  CoreWatch watch(0, [] { return std::optional<double>(); });
  EXPECT_FALSE(watch.slowed(1000));
}

TEST(ACoreWatch, ReadsWhatLinuxSaysOfTheThread) {
  const auto waited = CoreWatch::waited();
  if (!waited) GTEST_SKIP() << "this kernel does not say";
  EXPECT_GE(*waited, 0);
  EXPECT_LT(*waited, 1e6);
}

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

TEST(ALimitOfCores, IsTheSmallestOfTheControlGroupsRoundedUp) {
  const test::TempFolder folder;
  const auto limit = [&] { return group_core_limit(folder / "own", folder / "groups"); };
  EXPECT_FALSE(limit()) << "no groups at all";
  write(folder / "own", "0::/jobs/mine\n");
  EXPECT_FALSE(limit());
  write(folder / "groups/jobs/mine/cpu.max", "max 100000\n");
  EXPECT_FALSE(limit());
  write(folder / "groups/jobs/cpu.max", "450000 100000\n");
  EXPECT_EQ(limit(), 5);
  write(folder / "groups/jobs/mine/cpu.max", "150000 100000\n");
  EXPECT_EQ(limit(), 2);
  write(folder / "groups/cpu.max", "5000 100000\n");  // a container sees its own group as the root
  EXPECT_EQ(limit(), 1);
  for (const auto* nonsense : {"", "x y", "0 0", "-1 100000", "9e999 1"}) {
    write(folder / "groups/cpu.max", nonsense);
    EXPECT_EQ(limit(), 2) << nonsense;
  }
}

TEST(ALimitOfCores, IsReadFromTheFirstVersionOfControlGroupsToo) {
  const test::TempFolder folder;
  const auto limit = [&] { return group_core_limit(folder / "own", folder / "groups"); };
  write(folder / "own", "5:memory:/m\n4:cpu,cpuacct:/jobs\n0::/\n");
  write(folder / "groups/cpu,cpuacct/jobs/cpu.cfs_quota_us", "-1\n");
  write(folder / "groups/cpu,cpuacct/jobs/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(limit());
  write(folder / "groups/cpu,cpuacct/jobs/cpu.cfs_quota_us", "300000\n");
  EXPECT_EQ(limit(), 3);
}

/// Sets a variable for its lifetime.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* text = std::getenv(name)) before_ = text;
    ::setenv(name, value, 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(Cores, AreThoseThatTheProcessIsBoundTo) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const auto all = core_count();
  EXPECT_GE(all, 1);
  EXPECT_LE(all, CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(core_count(), 1);
  ::sched_setaffinity(0, sizeof before, &before);
}

TEST(Threads, AreAsManyAsCoresOrFewerByOpenMPsVariable) {
  for (const auto* none : {"", "many", "0", "-2", "100000"}) {
    const Variable variable("OMP_NUM_THREADS", none);
    EXPECT_EQ(default_threads(), core_count()) << none;
  }
  for (const auto* one : {"1", "1,4"}) {
    const Variable variable("OMP_NUM_THREADS", one);
    EXPECT_EQ(default_threads(), 1) << one;
  }
}

}  // namespace
}  // namespace sgdph::lab::machine_test
