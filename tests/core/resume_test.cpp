// Save, load into a freshly constructed optimizer with other options, continue: the same bits as not stopping.

#include "support/networks.h"
#include "support/training.h"

#include <gtest/gtest.h>
#include <torch/script.h>

#include <sstream>

namespace sgdph::test::resume_test {
namespace {

using Make = std::function<std::unique_ptr<torch::optim::Optimizer>(const NetA& model, bool other)>;

/// Two groups, so that options are restored per group: BatchNorm and the rest.
template <class Optimizer, class Options>
Make two_groups(const Options& options, const Options& other_options) {
  return [=](const NetA& model, bool other) -> std::unique_ptr<torch::optim::Optimizer> {
    const auto& chosen = other ? other_options : options;
    Parameters norm, rest;
    for (const auto& item : model->named_parameters()) {
      (item.key().find("bn") == 0 ? norm : rest).push_back(item.value());
    }
    Groups groups;
    groups.push_back(group(rest, chosen));
    groups.push_back(group(norm, Options(chosen).lr(chosen.lr() * 0.5).weight_decay(other ? 0 : 0.02)));
    return std::make_unique<Optimizer>(groups, chosen);
  };
}

template <class Optimizer, class Options>
Make one_group(const Options& options, const Options& other_options) {
  return [=](const NetA& model, bool other) -> std::unique_ptr<torch::optim::Optimizer> {
    return std::make_unique<Optimizer>(model->parameters(), other ? other_options : options);
  };
}

Make from_module(const SGDPHOptions& options, const SGDPHOptions& other_options) {
  return [=](const NetA& model, bool other) -> std::unique_ptr<torch::optim::Optimizer> {
    return std::make_unique<SGDPH>(*model, other ? other_options : options);
  };
}

NetA make_model(uint64_t seed) {
  torch::manual_seed(seed);
  NetA model;
  return model;
}

at::Tensor batch_loss(NetA& model, int64_t step) {
  torch::manual_seed(1000 + step);
  const auto inputs = torch::randn({8, 1, 8, 8}, torch::kFloat64);
  const auto labels = torch::randint(5, {8}, torch::kLong);
  return torch::nn::functional::cross_entropy(model->forward(inputs), labels);
}

void train(NetA& model, torch::optim::Optimizer& optimizer, Scheduler& scheduler, int64_t from, int64_t to) {
  for (int64_t step = from; step < to; ++step) {
    train_step(optimizer, [&] { return batch_loss(model, step); });
    if (step % 3 == 2) scheduler.step();
    // A learning rate changed by hand between schedule steps must survive too.
    if (step == 5) optimizer.param_groups()[0].options().set_lr(0.0123);
  }
}

struct Case {
  std::string name;
  Make make;
};

const auto kOther = SGDPHOptions(7).weight_decay(0.9).eps(3).momentum(0.1).hessian_momentum(0.2).lr_so(9).seed(99);

std::vector<Case> cases() {
  const auto base = SGDPHOptions(0.02).weight_decay(0.005).seed(5);
  const auto with = [&](auto change) {
    auto options = base;
    change(options);
    return options;
  };
  const auto rademacher = with([](auto& o) { o.probe(Probe::Rademacher); });
  const auto joint = with([](auto& o) { o.probe(Probe::Rademacher).refresh(Refresh::Joint).refresh_every(2); });
  const auto hadamard = with([](auto& o) { o.probe(Probe::Hadamard).probe_cycle(4).refresh(Refresh::All); });
  const auto spread = with([](auto& o) { o.probe(Probe::Rademacher).refresh(Refresh::Spread); });
  const auto paper = with([](auto& o) { o.rule(Rule::Paper); });
  return {
      {"SgdPhTwoGroups", two_groups<SGDPH>(base, kOther)},
      {"SgdPhFromModule", from_module(base, kOther)},
      {"SgdPhPaperGuardMarks", one_group<SGDPH>(paper, kOther)},
      {"SgdPhRademacherCyclic", two_groups<SGDPH>(rademacher, kOther)},
      {"SgdPhRademacherJoint", from_module(joint, kOther)},
      {"SgdPhRademacherSpread", from_module(spread, kOther)},
      {"SgdPhHadamardMidCycle", two_groups<SGDPH>(hadamard, kOther)},
      {"AdaBelief",
       two_groups<AdaBelief>(
           AdaBeliefOptions(0.01).weight_decay(0.1).amsgrad(true).rectify(false), AdaBeliefOptions(5).betas({0, 0}))},
      {"AdaBeliefRectified", one_group<AdaBelief>(AdaBeliefOptions(0.01), AdaBeliefOptions(5).rectify(false))},
      {"AdaHessian", two_groups<AdaHessian>(AdaHessianOptions(0.05).seed(4), AdaHessianOptions(3).seed(77))},
      {"Apollo", two_groups<Apollo>(
                     ApolloOptions(0.02).warmup(12).weight_decay(0.01).rebound("belief"),
                     ApolloOptions(3).warmup(2).init_lr(1).weight_decay_type("stable"))},
  };
}

class Resume : public testing::TestWithParam<Case> {};

TEST_P(Resume, EqualsAnUninterruptedRunBitForBit) {
  // Step 7 lies in the middle of rotations and cycles.
  for (const int64_t stop : {1, 7, 12}) {
    auto whole = make_model(1);
    const auto optimizer = GetParam().make(whole, false);
    StepLR schedule(*optimizer, 2, 0.5, Warmup{1, 0.5});
    train(whole, *optimizer, schedule, 0, stop);
    std::stringstream saved_model, saved_optimizer, saved_schedule;
    torch::save(whole, saved_model);
    torch::save(*optimizer, saved_optimizer);
    torch::save(schedule, saved_schedule);
    train(whole, *optimizer, schedule, stop, 20);

    auto resumed = make_model(2);
    const auto fresh = GetParam().make(resumed, true);
    StepLR fresh_schedule(*fresh, 9, 0.9);
    torch::load(resumed, saved_model);
    torch::load(*fresh, saved_optimizer);
    torch::load(fresh_schedule, saved_schedule);
    train(resumed, *fresh, fresh_schedule, stop, 20);

    for (const auto& item : whole->named_parameters()) {
      EXPECT_TRUE(torch::equal(item.value(), resumed->named_parameters()[item.key()])) << item.key() << ", " << stop;
    }
    // Equal optimizers have equal archives: every option, buffer, count and mark.
    std::stringstream a, b;
    torch::save(*optimizer, a);
    torch::save(*fresh, b);
    EXPECT_EQ(a.str(), b.str()) << "stop at " << stop;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Resume, testing::ValuesIn(cases()), [](const auto& info) {
  return info.param.name;
});

TEST(Archive, RestoresGuardMarks) {
  auto model = make_model(1);
  const auto options = SGDPHOptions(0.02).rule(Rule::Paper);
  SGDPH optimizer(model->parameters(), options);
  train_step(optimizer, [&] { return batch_loss(model, 0); });
  ASSERT_EQ(optimizer.partition().blocks(), 4) << "fc.bias is marked";
  std::stringstream file;
  torch::save(optimizer, file);
  SGDPH fresh(model->parameters(), options);
  ASSERT_EQ(fresh.partition().blocks(), 5);
  torch::load(fresh, file);
  EXPECT_EQ(fresh.partition().blocks(), 4);
}

TEST(Archive, RestoresThePartitionOfAModule) {
  auto model = make_model(1);
  SGDPH optimizer(*model);
  std::stringstream file;
  torch::save(optimizer, file);
  SGDPH fresh(model->parameters(), SGDPHOptions(0.01).rule(Rule::Paper));
  torch::load(fresh, file);
  EXPECT_EQ(fresh.partition().blocks(), 4) << "linear bias first-order, no last one singled out";
  EXPECT_TRUE(fresh.partition().entries[5].second_order) << "bn2.bias";
}

TEST(Archive, RestoresNamesAndReasons) {
  auto model = make_model(1);
  SGDPH optimizer(*model, {}, first_order_named({"bn1.bias"}));
  std::stringstream file, again;
  torch::save(optimizer, file);
  SGDPH fresh(model->parameters());
  torch::load(fresh, file);
  const auto expected = optimizer.partition().entries, got = fresh.partition().entries;
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].name, expected[i].name);
    EXPECT_EQ(got[i].reason, expected[i].reason);
    EXPECT_EQ(got[i].second_order, expected[i].second_order) << got[i].name;
  }
  EXPECT_EQ(got[1].reason, "norm gain") << got[1].name;
  torch::save(fresh, again);
  EXPECT_EQ(file.str(), again.str()) << "and they are saved in turn";
}

TEST(Archive, OfNamelessParametersLeavesNamesAlone) {
  auto model = make_model(1);
  std::stringstream file;
  torch::save(SGDPH(model->parameters()), file);
  SGDPH fresh(*model);
  torch::load(fresh, file);
  EXPECT_EQ(fresh.partition().entries[2].name, model->named_parameters()[2].key());
}

TEST(Archive, ThatDoesNotFitNamesTheParameter) {
  auto model = make_model(1);
  SGDPH optimizer(*model);
  train_step(optimizer, [&] { return batch_loss(model, 0); });
  std::stringstream file;
  torch::save(optimizer, file);
  torch::OrderedDict<std::string, at::Tensor> other;
  for (const auto& item : model->named_parameters()) {
    other.insert(item.key(), item.key() == "bn2.weight" ? torch::ones({2}, torch::kFloat64) : item.value());
  }
  SGDPH fresh(other);
  EXPECT_ERROR(torch::load(fresh, file), "bn2.weight", "shape");
}

/// What refusing an archive must leave alone.
void expect_refused(
    torch::optim::Optimizer& optimizer, std::stringstream& file, const std::vector<std::string>& texts) {
  std::stringstream before;
  torch::save(optimizer, before);
  const auto message = error_of([&] { torch::load(optimizer, file); });
  for (const auto& text : texts) EXPECT_NE(message.find(text), std::string::npos) << message;
  std::stringstream after;
  torch::save(optimizer, after);
  EXPECT_EQ(before.str(), after.str()) << "something changed";
}

TEST(Archive, OfAnotherOptimizerIsRefused) {
  auto model = make_model(1);
  AdaBelief adabelief(model->parameters());
  torch::optim::SGD sgd(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  SGDPH sgdph(model->parameters(), SGDPHOptions(0.05));
  AdaHessian adahessian(model->parameters());
  Apollo apollo(model->parameters());
  for (int step = 0; step < 2; ++step) {
    train_step(sgd, [&] { return batch_loss(model, step); });
    train_step(adabelief, [&] { return batch_loss(model, step); });
    train_step(sgdph, [&] { return batch_loss(model, step); });
  }
  std::stringstream a, b, c, d;
  torch::save(adabelief, a);
  torch::save(sgd, b);
  torch::save(sgdph, c);
  torch::save(sgdph, d);
  expect_refused(sgdph, a, {"SGDPH", "AdaBelief"});
  expect_refused(sgdph, b, {"SGDPH", "does not hold"});
  expect_refused(adahessian, c, {"AdaHessian", "SGDPH"});
  expect_refused(apollo, d, {"Apollo", "SGDPH"});
}

/// The archive of an optimizer or scheduler with one top-level value changed: an archive is a module's attributes.
template <class Saved>
std::stringstream with_changed(const Saved& saved, const std::string& key, const c10::IValue& value) {
  std::stringstream file, changed;
  torch::save(saved, file);
  auto module = torch::jit::load(file);
  module.setattr(key, value);
  module.save(changed);
  return changed;
}

TEST(Archive, OfANewerVersionIsRefused) {
  auto model = make_model(1);
  SGDPH optimizer(model->parameters());
  train_step(optimizer, [&] { return batch_loss(model, 0); });
  auto newer = with_changed(optimizer, "sgdph_format", int64_t{5});
  expect_refused(optimizer, newer, {"SGDPH", "format 5", "up to 4", "newer"});
  auto same = with_changed(optimizer, "sgdph_format", int64_t{4});
  EXPECT_NO_THROW(torch::load(optimizer, same)) << "the change of number alone was refused";
  auto negative = with_changed(optimizer, "sgdph_format", int64_t{0});
  expect_refused(optimizer, negative, {"SGDPH", "format 0"});

  StepLR schedule(optimizer, 2);
  auto newer_schedule = with_changed(schedule, "sgdph_format", int64_t{2});
  EXPECT_ERROR(torch::load(schedule, newer_schedule), "StepLR", "newer");
}

TEST(Archive, ThatLostATensorIsRefused) {
  auto model = make_model(1);
  SGDPH optimizer(model->parameters());
  train_step(optimizer, [&] { return batch_loss(model, 0); });
  std::stringstream file, damaged;
  torch::save(optimizer, file);
  auto module = torch::jit::load(file);
  // The first parameter's momentum becomes a number.
  torch::jit::Module state = module.attr("group/0").toModule().attr("state/0").toModule();
  state._ivalue()->unsafeRemoveAttr("momentum_buffer");
  module.save(damaged);
  expect_refused(optimizer, damaged, {"momentum_buffer"});
}

TEST(Archive, FitsAnOptimizerWhoseGroupsGrewThroughTheBaseClass) {
  auto model = make_model(1);
  const auto p = model->parameters();
  const auto grown = [&] {
    auto optimizer = std::make_unique<SGDPH>(Parameters(p.begin(), p.begin() + 4));
    static_cast<torch::optim::Optimizer&>(*optimizer)
        .add_param_group(torch::optim::OptimizerParamGroup(Parameters(p.begin() + 4, p.end())));
    return optimizer;
  };
  std::stringstream file;
  torch::save(*grown(), file);
  auto fresh = grown();
  torch::load(*fresh, file);
  EXPECT_EQ(fresh->partition().blocks(), 4);
}

TEST(Archive, ThatDoesNotFitTheModelIsRefused) {
  auto model = make_model(1);
  SGDPH optimizer(model->parameters());
  train_step(optimizer, [&] { return batch_loss(model, 0); });
  const auto refuse = [&](std::unique_ptr<SGDPH> saved, const std::vector<std::string>& texts) {
    std::stringstream file;
    torch::save(*saved, file);
    expect_refused(optimizer, file, texts);
  };
  auto p = model->parameters();
  Groups groups;
  groups.push_back(group(Parameters(p.begin(), p.begin() + 2), SGDPHOptions()));
  groups.push_back(group(Parameters(p.begin() + 2, p.end()), SGDPHOptions()));
  refuse(std::make_unique<SGDPH>(groups), {"2 parameter groups", "1"});
  refuse(std::make_unique<SGDPH>(Parameters(p.begin(), p.begin() + 3)), {"group 0", "3 parameters"});
  std::swap(p[0], p[3]);
  auto swapped = std::make_unique<SGDPH>(p);
  train_step(*swapped, [&] { return batch_loss(model, 0); });
  refuse(std::move(swapped), {"parameter 0", "momentum_buffer", "shape"});
}

TEST(Archive, WithAnInvalidOptionIsRefused) {
  auto model = make_model(1);
  SGDPH broken(model->parameters(), SGDPHOptions(0.01));
  broken.param_groups()[0].options().set_lr(-3);  // not noticed until the next step, but saved
  std::stringstream file;
  torch::save(broken, file);
  SGDPH optimizer(model->parameters(), SGDPHOptions(0.05));
  expect_refused(optimizer, file, {"lr", "-3", "archive"});
}

}  // namespace
}  // namespace sgdph::test::resume_test
