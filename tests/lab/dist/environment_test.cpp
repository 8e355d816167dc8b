#include "dist/environment.h"

#include "base/error.h"
#include "dist/address.h"
#include "support/checks.h"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace sgdph::lab::dist {
namespace {

using Variables = std::map<std::string, std::string>;

Environment read(const Variables& variables) {
  return read_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal(const Variables& variables) {
  try {
    read(variables);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

const Variables kMaster{{"MASTER_ADDR", "host0"}, {"MASTER_PORT", "29500"}};

Variables with_master(Variables variables) {
  variables.insert(kMaster.begin(), kMaster.end());
  return variables;
}

void expect_rank(const Variables& variables, int64_t rank, int64_t size, const std::string& launcher) {
  const auto found = read(with_master(variables));
  EXPECT_EQ(found.rank, rank);
  EXPECT_EQ(found.size, size);
  EXPECT_EQ(found.launcher, launcher);
  EXPECT_EQ(found.address, "host0");
  EXPECT_EQ(found.port, 29500);
}

TEST(Environment, WithoutALauncherIsOneProcess) {
  EXPECT_TRUE(read({}).alone());
  EXPECT_TRUE(read(kMaster).alone());
}

TEST(Environment, KnowsTheVariablesOfEveryLauncher) {
  expect_rank({{"RANK", "2"}, {"WORLD_SIZE", "4"}}, 2, 4, "RANK and WORLD_SIZE");
  expect_rank({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}}, 2, 3, "Open MPI");
  expect_rank({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}}, 1, 3, "Hydra");
  expect_rank({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_ID", "0"}}, 1, 2, "Slurm");
}

TEST(Environment, OneProcessOfALauncherNeedsNoAddress) {
  EXPECT_TRUE(read({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).alone());
  EXPECT_TRUE(read({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).alone());
}

TEST(Environment, OneProcessOfTorchrunIsKnownAsTorchruns) {
  // An elastic job that lost all hosts but one starts again alone, and has to go on with its run.
  const auto found = read({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"TORCHELASTIC_RUN_ID", "job"}});
  EXPECT_TRUE(found.alone());
  EXPECT_EQ(found.launcher, "torchrun");
}

TEST(Environment, AnAllocationOfSlurmWithoutAStepIsOneProcess) {
  EXPECT_TRUE(read({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}}).alone());
  EXPECT_TRUE(read({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_STEP_ID", "batch"}}).alone());
}

TEST(Environment, TorchrunStartedBySlurmIsTorchruns) {
  expect_rank(
      {{"RANK", "3"},
       {"WORLD_SIZE", "4"},
       {"TORCHELASTIC_RUN_ID", "job"},
       {"SLURM_PROCID", "1"},
       {"SLURM_STEP_NUM_TASKS", "2"},
       {"SLURM_STEP_ID", "0"}},
      3, 4, "torchrun");
}

TEST(Environment, ReadsWhatElseTorchrunAndSlurmSay) {
  const auto torchrun = read(with_master(
      {{"RANK", "3"},
       {"WORLD_SIZE", "4"},
       {"LOCAL_RANK", "1"},
       {"LOCAL_WORLD_SIZE", "2"},
       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
       {"TORCHELASTIC_RESTART_COUNT", "2"}}));
  EXPECT_EQ(torchrun.local_rank, 1);
  EXPECT_EQ(torchrun.local_size, 2);
  EXPECT_TRUE(torchrun.launcher_has_store);
  EXPECT_EQ(torchrun.restarts, 2);
  const auto slurm = read(with_master(
      {{"SLURM_PROCID", "3"},
       {"SLURM_STEP_NUM_TASKS", "4"},
       {"SLURM_STEP_ID", "7"},
       {"SLURM_LOCALID", "1"},
       {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
       {"SLURM_CPUS_PER_TASK", "6"}}));
  EXPECT_EQ(slurm.local_rank, 1);
  EXPECT_EQ(slurm.local_size, 2);
  EXPECT_EQ(slurm.cores, 6);
}

TEST(Environment, ASecondLauncherThatAgreesSaysWhatTheFirstDoesNot) {
  const Variables step{{"SLURM_PROCID", "3"},  {"SLURM_STEP_NUM_TASKS", "4"},          {"SLURM_STEP_ID", "7"},
                       {"SLURM_LOCALID", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}, {"SLURM_CPUS_PER_TASK", "6"}};
  for (Variables first : {Variables{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}, {{"RANK", "3"}, {"WORLD_SIZE", "4"}}}) {
    first.insert(step.begin(), step.end());
    const auto found = read(with_master(first));
    EXPECT_EQ(found.rank, 3);
    EXPECT_EQ(found.local_rank, 1);
    EXPECT_EQ(found.local_size, 2);
    EXPECT_EQ(found.cores, 6);
  }
}

void expect_refused(const Variables& variables, const std::vector<std::string>& says) {
  const auto message = refusal(variables);
  for (const auto& word : says)
    EXPECT_NE(message.find(word), std::string::npos) << "'" << message << "' lacks " << word;
}

TEST(Environment, WhatIsIncompleteOutOfRangeOrContradictoryIsRefusedByName) {
  expect_refused({{"RANK", "0"}}, {"RANK is set and WORLD_SIZE is not"});
  expect_refused({{"WORLD_SIZE", "2"}}, {"WORLD_SIZE is set and RANK is not"});
  expect_refused(with_master({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), {"RANK is 2", "WORLD_SIZE is 2"});
  expect_refused(with_master({{"RANK", "one"}, {"WORLD_SIZE", "2"}}), {"RANK is 'one'"});
  expect_refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}}, {"MASTER_ADDR is not set"});
  expect_refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}}, {"MASTER_PORT is not set"});
  expect_refused(
      {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "70000"}}, {"MASTER_PORT is '70000'"});
  expect_refused({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}, {"Open MPI", "mpirun -x MASTER_ADDR"});
  expect_refused(
      with_master({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
      {"rank 0 of 2", "rank 1 of 2 by Open MPI"});
}

/// Of this host. A bare system has no /etc/hosts, and Debian 12's then does not know localhost.
std::vector<std::string> local_names() {
  std::vector<std::string> names{"127.0.0.1", "127.0.0.77"};
  try {
    resolve("localhost");
    names.emplace_back("localhost");
  } catch (const std::runtime_error&) {
  }
  return names;
}

TEST(Address, TowardsAHostIsTheOneOfTheInterfaceInBetween) {
  EXPECT_EQ(address_towards("127.0.0.1"), "127.0.0.1");
  for (const auto& own : local_names()) EXPECT_TRUE(is_loopback(address_towards(own))) << own;
  EXPECT_FALSE(is_loopback("10.0.0.1"));
}

TEST(Address, OfAnotherHostDoesNotReachThisOne) {
  const auto port = free_port();
  for (const auto& own : local_names()) EXPECT_TRUE(reaches_itself(own, port)) << own;
  EXPECT_FALSE(reaches_itself("192.0.2.1", port));  // of documents
  EXPECT_FALSE(is_taken(port));
}

TEST(Address, ANameThatDoesNotResolveIsNamed) {
  try {
    resolve("no.such.host.invalid");
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("'no.such.host.invalid' does not resolve"), std::string::npos);
  }
}

TEST(Address, AnInterfaceThatIsNotThereIsNamedWithThoseThatAre) {
  EXPECT_EQ(interfaces_of("eth0,eth1"), (std::vector<std::string>{"eth0", "eth1"}));
  EXPECT_TRUE(interfaces_of(nullptr).empty());
  EXPECT_NO_THROW(check_interface("lo"));
  try {
    check_interface("eth77");
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("'eth77'"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("lo"), std::string::npos);
  }
}

}  // namespace
}  // namespace sgdph::lab::dist
