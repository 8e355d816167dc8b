// Blocks are the user's to name: by a function, by names, by module types; in groups, and of models without modules.

#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>

#include <torch/script.h>

#include <set>
#include <sstream>

namespace sgdph::test::classifier_test {
namespace {

namespace nn = torch::nn;
using Named = torch::OrderedDict<std::string, at::Tensor>;

struct RMSNormImpl : nn::Module {
  explicit RMSNormImpl(int64_t channels) : scale(register_parameter("scale", torch::ones({channels}))) {
    table = register_parameter("table", torch::ones({channels}));
  }
  at::Tensor forward(const at::Tensor& x) { return x * x.square().mean(-1, true).add(1e-6).rsqrt() * scale * table; }
  at::Tensor scale, table;
};
TORCH_MODULE(RMSNorm);

/// As in ConvNeXt: one factor for each channel of an image.
struct LayerScaleImpl : nn::Module {
  explicit LayerScaleImpl(int64_t channels) : gamma(register_parameter("gamma", torch::full({channels, 1, 1}, 0.5))) {}
  at::Tensor forward(const at::Tensor& x) { return x * gamma; }
  at::Tensor gamma;
};
TORCH_MODULE(LayerScale);

struct NormalFlowImpl : nn::Module {
  NormalFlowImpl() : scale(register_parameter("scale", torch::ones({3}))) {}
  at::Tensor scale;
};
TORCH_MODULE(NormalFlow);

template <class Inner>
struct WrappedImpl : nn::Module {
  WrappedImpl() : scale(register_parameter("scale", torch::ones({3}))) {}
  at::Tensor scale;
};

std::set<std::string> blocks(const SGDPH& optimizer) {
  std::set<std::string> names;
  for (const auto& entry : optimizer.partition().entries) {
    if (entry.second_order) names.insert(entry.name);
  }
  return names;
}

Partition::Entry entry(const SGDPH& optimizer, const std::string& name) {
  for (const auto& entry : optimizer.partition().entries) {
    if (entry.name == name) return entry;
  }
  ADD_FAILURE() << "no parameter is called " << name;
  return {};
}

double weight_decay_of(SGDPH& optimizer, const std::string& name) {
  return dynamic_cast<SGDPHOptions&>(optimizer.param_groups()[entry(optimizer, name).group].options()).weight_decay();
}

nn::Sequential convolutional() {
  return nn::Sequential(
      nn::Conv2d(nn::Conv2dOptions(2, 3, 3).bias(false)), LayerScale(3), nn::GroupNorm(nn::GroupNormOptions(1, 3)),
      nn::Functional([](const at::Tensor& x) {
        return torch::tanh(x).mean(std::vector<int64_t>{2, 3});
      }),
      nn::PReLU(nn::PReLUOptions().num_parameters(3)), nn::Linear(3, 2));
}

TEST(Classifier, ATypeNamedLikeANormIsOne) {
  nn::ModuleList model(RMSNorm(3), NormalFlow(), std::make_shared<WrappedImpl<RMSNormImpl>>());
  SGDPH optimizer(*model);
  EXPECT_EQ(blocks(optimizer), (std::set<std::string>{"0.scale"}));
  EXPECT_EQ(entry(optimizer, "0.scale").reason, "norm gain, by its type's name");
  EXPECT_NE(entry(optimizer, "1.scale").reason.find("NormalFlow"), std::string::npos);
}

TEST(Classifier, NamesChooseChannelWiseParameters) {
  auto model = convolutional();
  SGDPH optimizer(*model, SGDPHOptions(0.1), blocks_named({"?.gamma", "0.*", "5.b*s"}));
  EXPECT_EQ(blocks(optimizer), (std::set<std::string>{"1.gamma", "2.weight", "2.bias", "5.bias"})) << "no kernel";
  EXPECT_NE(entry(optimizer, "5.bias").reason.find("linear bias, a block by the classifier"), std::string::npos);
}

TEST(Classifier, PatternsCoverTheWholeName) {
  auto model = convolutional();
  for (const auto& [glob, hit] : std::vector<std::pair<std::string, bool>>{
           {"1.gamma", true},
           {"*", true},
           {"*gamma", true},
           {"1*", true},
           {"?.?????", true},
           {"*a*m*", true},
           {"1.gamm", false},
           {"1.gamma?", false},
           {".gamma", false},
           {"", false},
           {"*.gamma.*", false},
           {"1?*m", false},
           {"**1**.**", true}}) {
    SGDPH optimizer(*model, {}, either(blocks_named({glob}), first_order_named({"nothing", "5.weight"})));
    EXPECT_EQ(entry(optimizer, "1.gamma").second_order, hit) << glob;
  }
}

TEST(Classifier, TypesChooseTheirParameters) {
  auto model = convolutional();
  EXPECT_EQ(
      blocks(SGDPH(*model, {}, blocks_of<LayerScaleImpl>())), (std::set<std::string>{"1.gamma", "2.weight", "2.bias"}));
  const auto both = either(blocks_of<LayerScale>(), blocks_of<nn::PReLUImpl>());
  EXPECT_EQ(
      blocks(SGDPH(model, SGDPHOptions(0.1), both)),
      (std::set<std::string>{"1.gamma", "2.weight", "2.bias", "4.weight"}));
}

TEST(Classifier, TheFirstOfTwoHasTheWord) {
  auto model = convolutional();
  const auto never = first_order_named({"2.*"}), always = blocks_named({"2.*"});
  EXPECT_TRUE(blocks(SGDPH(*model, {}, either(never, always))).empty());
  EXPECT_EQ(blocks(SGDPH(*model, {}, either(always, never))).size(), 2);
  EXPECT_TRUE(blocks(SGDPH(*model, {}, either({}, never))).empty());
}

TEST(Classifier, AFunctionIsToldEverythingAndAskedOnce) {
  auto model = convolutional();
  std::vector<ParameterInfo> asked;
  SGDPH optimizer(*model, {}, [&](const ParameterInfo& info) {
    asked.push_back(info);
    return info.name == "5.weight" ? Role::Block : info.role == Role::Block ? Role::FirstOrder : Role::Default;
  });
  ASSERT_EQ(asked.size(), model->parameters().size());
  EXPECT_EQ(asked[1].name, "1.gamma");
  EXPECT_EQ(asked[1].local_name, "gamma");
  EXPECT_NE(dynamic_cast<const LayerScaleImpl*>(asked[1].module), nullptr);
  EXPECT_TRUE(asked[1].parameter.is_same(model->parameters()[1]));
  EXPECT_EQ(blocks(optimizer), (std::set<std::string>{"5.weight"})) << "its word is the last, whatever the shape";
  EXPECT_EQ(entry(optimizer, "2.bias").reason, "norm shift, first-order by the classifier");
}

TEST(Classifier, BlocksOfAnyShapeAreMeasured) {
  torch::manual_seed(4);
  auto model = convolutional();
  model->to(torch::kFloat64);
  SGDPH optimizer(
      *model, SGDPHOptions(0.1).refresh(Refresh::All).shift_guard(false),
      either(
          blocks_of<LayerScale>(), [](auto& info) { return info.name == "5.weight" ? Role::Block : Role::Default; }));
  const auto inputs = torch::randn({4, 2, 6, 6}, torch::kFloat64);
  const auto loss = [&] { return model->forward(inputs).square().mean(); };
  auto gamma = model->parameters()[1];
  const auto hessian = brute_force_hessian(loss(), {gamma});
  train_step(optimizer, loss);
  bool found = false;
  for (const auto& block : optimizer.last_step().blocks_refreshed) {
    if (block.name != "1.gamma") continue;
    found = true;
    EXPECT_TRUE(torch::allclose(block.estimate.flatten(), hessian.sum(1), 1e-9, 1e-12));
    EXPECT_EQ(block.estimate.sizes(), gamma.sizes());
  }
  EXPECT_TRUE(found);
}

TEST(Classifier, ThatDecidesNothingIsNoticed) {
  auto model = convolutional();
  testing::internal::CaptureStderr();
  SGDPH(*model, {}, blocks_named({"*.gamma"}));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  SGDPH(*model, {}, blocks_named({"*.gama"}));
  const auto notice = testing::internal::GetCapturedStderr();
  EXPECT_NE(notice.find("none of the 7 parameters"), std::string::npos) << notice;
}

TEST(Classifier, ComplexParametersAreFirstOrder) {
  auto wave = torch::ones({3}, torch::kComplexDouble).requires_grad_(true);
  SGDPH nameless(Parameters{wave, leaf({1, 2})}, SGDPHOptions(0.1).rule(Rule::Paper));
  EXPECT_EQ(nameless.partition().entries[0].reason, "complex");
  EXPECT_EQ(nameless.partition().blocks(), 1);
  EXPECT_ERROR(SGDPH(Named({{"wave", wave}}), {}, blocks_named({"*"})), "wave", "complex");
  const auto before = wave.detach().clone();
  const auto real = nameless.param_groups()[0].params()[1];
  train_step(nameless, [&] { return at::real(wave * wave.conj()).sum() + real.pow(4).sum(); });
  EXPECT_TRUE(torch::allclose(wave.detach(), 0.82 * before)) << "0.1 times 0.9 of the gradient 2 w";
  EXPECT_EQ(nameless.last_step().blocks_refreshed.size(), 1) << "the guard's look beside it";
}

TEST(NamedTensors, AreAsPublishedWithNames) {
  NetA model;
  SGDPH named(model->named_parameters()), nameless(model->parameters());
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(named.partition().entries[i].name, model->named_parameters()[i].key());
    EXPECT_EQ(named.partition().entries[i].second_order, nameless.partition().entries[i].second_order);
  }
  EXPECT_NE(entry(named, "fc.bias").reason.find("last"), std::string::npos);
}

TEST(NamedTensors, AreWhatTheClassifierSaysAndNothingElse) {
  NetA model;
  SGDPH optimizer(model->named_parameters(), {}, blocks_named({"bn?.*"}));
  EXPECT_EQ(blocks(optimizer), (std::set<std::string>{"bn1.weight", "bn1.bias", "bn2.weight", "bn2.bias"}));
  EXPECT_EQ(entry(optimizer, "fc.bias").reason, "1-D");
  EXPECT_ERROR(SGDPH(Named({{"lost", at::Tensor()}})), "lost", "undefined");
}

TEST(NamedTensors, OfATorchScriptModelTrainAsTheModel) {
  torch::jit::Module script("Scripted");
  torch::manual_seed(2);
  script.register_parameter("gain", torch::rand({4}, torch::kFloat64) + 0.5, false);
  script.register_parameter("weight", torch::randn({2, 4}, torch::kFloat64), false);
  script.define(R"(
    def forward(self, x):
        return torch.tanh(x * self.gain) @ self.weight.t()
  )");
  Named named;
  for (const auto& item : script.named_parameters()) named.insert(item.name, item.value);
  for (auto& item : named) item.value().requires_grad_(true);
  SGDPH optimizer(named, SGDPHOptions(0.1), blocks_named({"*gain"}));
  EXPECT_EQ(blocks(optimizer), std::set<std::string>{"gain"});
  const auto inputs = torch::randn({16, 4}, torch::kFloat64), labels = inputs.sum(1).gt(0).to(torch::kLong);
  const auto loss = [&] { return nn::functional::cross_entropy(script.forward({inputs}).toTensor(), labels); };
  const double first = train_step(optimizer, loss);
  EXPECT_EQ(optimizer.last_step().blocks_refreshed.at(0).name, "gain");
  for (int step = 0; step < 30; ++step) train_step(optimizer, loss);
  EXPECT_LT(loss().item<double>(), 0.9 * first);
}

TEST(Group, NoDecayOnNormsIsOneLine) {
  nn::Sequential model(
      nn::Linear(5, 6), nn::LayerNorm(nn::LayerNormOptions({6})), RMSNorm(6),
      nn::LayerNorm(nn::LayerNormOptions({2, 3})), WeightNormLinear(7, 8));
  const auto options = SGDPHOptions(0.1).weight_decay(0.5);
  SGDPH optimizer(*model, options);
  const auto before = blocks(optimizer);
  optimizer.group(norms(), SGDPHOptions(options).weight_decay(0));

  EXPECT_EQ(blocks(optimizer), before);
  ASSERT_EQ(optimizer.param_groups().size(), 2);
  const std::set<std::string> without{"1.weight", "1.bias", "2.scale", "3.weight", "3.bias"};
  for (const auto& item : model->named_parameters()) {
    EXPECT_EQ(weight_decay_of(optimizer, item.key()), without.count(item.key()) != 0 ? 0 : 0.5) << item.key();
  }
  EXPECT_EQ(entry(optimizer, "1.weight").reason, "norm gain");
}

TEST(Group, IsChosenByFunctionClassifierNameOrRole) {
  auto model = convolutional();
  const auto options = SGDPHOptions(0.1).rule(Rule::Paper);
  SGDPH optimizer(*model, options);
  optimizer.group([](const ParameterInfo& info) { return info.role == Role::Block; }, SGDPHOptions(options).lr(1))
      .group(blocks_named({"1.*"}), SGDPHOptions(options).lr(2))
      .group(blocks_of<nn::PReLU>(), SGDPHOptions(options).second_order(false).lr(3));
  EXPECT_EQ(entry(optimizer, "2.weight").group, 1);
  EXPECT_EQ(entry(optimizer, "1.gamma").group, 2);
  EXPECT_EQ(entry(optimizer, "4.weight").group, 3);
  EXPECT_EQ(optimizer.param_groups()[3].options().get_lr(), 3);
}

TEST(Group, KeepsStatesAndTakesOwnOptionsFromThenOn) {
  NetA model;
  const auto inputs = torch::randn({8, 1, 6, 6}, torch::kFloat64), labels = torch::randint(5, {8}, torch::kLong);
  const auto options = SGDPHOptions(0.05);
  SGDPH optimizer(*model, options);
  const auto loss = [&] { return nn::functional::cross_entropy(model->forward(inputs), labels); };
  for (int step = 0; step < 4; ++step) train_step(optimizer, loss);
  const auto gain = model->bn1->weight.detach().clone(), kernel = model->conv1->weight.detach().clone();
  const auto refreshes = optimizer.param_state(model->bn1->weight)->refreshes();
  ASSERT_GT(refreshes, 0);
  optimizer.group(norms(), SGDPHOptions(options).lr(0));
  EXPECT_EQ(optimizer.param_state(model->bn1->weight)->refreshes(), refreshes);
  train_step(optimizer, loss);
  EXPECT_TRUE(torch::equal(model->bn1->weight, gain));
  EXPECT_FALSE(torch::equal(model->conv1->weight, kernel));
}

TEST(Group, ThatIsEmptyOrWrongChangesNothing) {
  auto model = convolutional();
  SGDPH optimizer(*model, SGDPHOptions(0.1));
  std::stringstream before, after;
  torch::save(optimizer, before);
  EXPECT_ERROR(optimizer.group(blocks_named({"9.*"}), SGDPHOptions(0.1)), "no parameter", "partition()");
  EXPECT_ERROR(optimizer.group(norms(), SGDPHOptions(-1)), "group 1", "lr", "-1");
  EXPECT_ERROR(optimizer.group(norms(), SGDPHOptions(0.1).rule(Rule::Paper)), "rule", "optimizer-wide");
  torch::save(optimizer, after);
  EXPECT_EQ(before.str(), after.str());
  EXPECT_EQ(optimizer.partition().entries.size(), 7);
}

TEST(Group, DoesNotTouchAModuleThatIsGone) {
  auto model = std::make_unique<NetA>();
  SGDPH optimizer(**model);
  model.reset();
  EXPECT_ERROR(optimizer.group(norms(), SGDPHOptions()), "no parameter");
  EXPECT_NO_THROW(optimizer.group(blocks_named({"bn*"}), SGDPHOptions().weight_decay(0)));
  EXPECT_EQ(entry(optimizer, "bn1.weight").group, 1);
}

}  // namespace
}  // namespace sgdph::test::classifier_test
