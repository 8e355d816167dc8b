// Which parameters are blocks, and why.

#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <sstream>

namespace sgdph::test::partition_test {
namespace {

namespace nn = torch::nn;

std::map<std::string, bool> roles(SGDPH& optimizer) {
  std::map<std::string, bool> roles;
  for (const auto& entry : optimizer.partition().entries) roles[entry.name] = entry.second_order;
  return roles;
}

TEST(PartitionFromModule, GoesByModuleType) {
  nn::Sequential model(
      nn::Conv1d(2, 3, 1), nn::BatchNorm1d(3), nn::ConvTranspose2d(nn::ConvTranspose2dOptions(3, 4, 2)),
      nn::GroupNorm(2, 4), nn::InstanceNorm3d(nn::InstanceNorm3dOptions(4).affine(true)),
      nn::LayerNorm(nn::LayerNormOptions({5})), nn::LayerNorm(nn::LayerNormOptions({5, 6})), nn::Linear(5, 6),
      WeightNormConv2d(nn::Conv2dOptions(6, 7, 3)), WeightNormLinear(7, 8),
      nn::PReLU(nn::PReLUOptions().num_parameters(8)));
  SGDPH optimizer(*model);
  const std::map<std::string, bool> expected{
      {"0.weight", false},    {"0.bias", true},   {"1.weight", true},     {"1.bias", true},   {"2.weight", false},
      {"2.bias", true},       {"3.weight", true}, {"3.bias", true},       {"4.weight", true}, {"4.bias", true},
      {"5.weight", true},     {"5.bias", true},   {"6.weight", false},    {"6.bias", false},  {"7.weight", false},
      {"7.bias", false},      {"8.gain", true},   {"8.direction", false}, {"8.bias", true},   {"9.gain", true},
      {"9.direction", false}, {"9.bias", false},  {"10.weight", false}};
  EXPECT_EQ(roles(optimizer), expected);
}

TEST(PartitionFromModule, KeepsTheOrderOfNamedParameters) {
  NetA model;
  SGDPH optimizer(*model);
  const auto named = model->named_parameters();
  const auto entries = optimizer.partition().entries;
  ASSERT_EQ(entries.size(), named.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].name, named[i].key());
    EXPECT_TRUE(entries[i].parameter.is_same(named[i].value()));
  }
}

TEST(PartitionFromModule, ListsASharedModuleOnce) {
  struct Shared : nn::Module {
    Shared() {
      register_module("a", layer);
      register_module("b", layer);
    }
    nn::BatchNorm1d layer{3};
  };
  Shared model;
  SGDPH optimizer(model);
  EXPECT_EQ(optimizer.partition().entries.size(), 2);
}

TEST(PartitionFromTensors, AllOneDimensionalParametersButTheLastUnderReference) {
  NetA model;
  SGDPH reference(model->parameters());
  EXPECT_EQ(reference.partition().blocks(), 4);
  EXPECT_FALSE(reference.partition().entries.back().second_order);
  EXPECT_NE(reference.partition().entries.back().reason.find("last"), std::string::npos);
  SGDPH paper(model->parameters(), SGDPHOptions(0.01).rule(Rule::Paper));
  EXPECT_EQ(paper.partition().blocks(), 5);
}

TEST(PartitionFromTensors, LastIsTheLastOneInOptimizerOrderAlsoAcrossGroupsAndAfterAnAddition) {
  NetA model;
  const auto p = model->parameters();
  SGDPH optimizer(Groups{torch::optim::OptimizerParamGroup(Parameters(p.begin() + 3, p.end()))});
  EXPECT_FALSE(optimizer.partition().entries[4].second_order) << "fc.bias";
  optimizer.add_param_group(torch::optim::OptimizerParamGroup(Parameters(p.begin(), p.begin() + 3)));
  EXPECT_TRUE(optimizer.partition().entries[4].second_order) << "fc.bias is no longer the last";
  EXPECT_FALSE(optimizer.partition().entries[7].second_order) << "bn1.bias is";
}

TEST(PartitionFromTensors, SecondOrderFalseOverridesAndExcludesNobodyElse) {
  NetA model;
  const auto p = model->parameters();
  Groups groups;
  groups.push_back(group(Parameters(p.begin(), p.end() - 1), SGDPHOptions(0.01)));
  groups.push_back(group({p.back()}, SGDPHOptions(0.01).second_order(false)));
  SGDPH optimizer(groups);
  EXPECT_EQ(optimizer.partition().blocks(), 4) << "bn2.bias stays a block: the last 1-D parameter is fc.bias";
}

TEST(Partition, PrintsOneLinePerParameterAndACount) {
  NetA model;
  SGDPH optimizer(*model);
  std::ostringstream text;
  text << optimizer.partition();
  EXPECT_NE(text.str().find("bn1.weight    second-order  norm gain"), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("fc.bias       first-order   linear bias"), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("4 blocks among 8 parameters"), std::string::npos) << text.str();
}

}  // namespace
}  // namespace sgdph::test::partition_test
