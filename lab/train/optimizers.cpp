#include "train/optimizers.h"

#include "base/error.h"
#include "settings/optimizer_table.h"
#include "train/curvature_control.h"
#include "train/training_step.h"

#include <sgdph/sgdph.h>
#include <torch/nn/module.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <sstream>

namespace sgdph::lab {
namespace {

template <class T>
void fill(std::optional<T>& setting, const T& value) {
  if (!setting) setting = value;
}

template <class Options>
void fill_adam(Settings& s, const Options& defaults) {
  fill(s.lr, defaults.lr());
  fill(s.weight_decay, defaults.weight_decay());
  fill(s.beta1, std::get<0>(defaults.betas()));
  fill(s.beta2, std::get<1>(defaults.betas()));
  fill(s.eps, defaults.eps());
}

template <class Options>
Options adam_options(const Settings& s) {
  auto options = Options(*s.lr);
  options.betas({*s.beta1, *s.beta2}).eps(*s.eps).weight_decay(*s.weight_decay);
  return options;
}

// The enumerations of SGD-PH by the names settings use.
template <class Enum>
struct Named {
  const char* name;
  Enum value;
};
constexpr Named<Rule> kRules[] = {{"reference", Rule::Reference}, {"paper", Rule::Paper}};
constexpr Named<Probe> kProbes[] = {
    {"ones", Probe::Ones}, {"rademacher", Probe::Rademacher}, {"hadamard", Probe::Hadamard}};
constexpr Named<Refresh> kRefreshes[] = {{"cyclic", Refresh::Cyclic}, {"all", Refresh::All}, {"joint", Refresh::Joint}};

template <class Enum, size_t n>
Enum by_name(const Named<Enum> (&table)[n], const std::string& name) {
  for (const auto& entry : table) {
    if (name == entry.name) return entry.value;
  }
  fail("unknown name '{}'", name);
}

template <class Enum, size_t n>
std::string name_of(const Named<Enum> (&table)[n], Enum value) {
  return std::find_if(std::begin(table), std::end(table), [&](const auto& entry) { return entry.value == value; })
      ->name;
}

void fill_sgd_ph(Settings& s) {
  SGDPHOptions defaults;
  fill(s.lr, defaults.lr());
  fill(s.weight_decay, defaults.weight_decay());
  fill(s.momentum, defaults.momentum());
  fill(s.eps, defaults.eps());
  fill(s.lr_so, defaults.lr_so());
  fill(s.hessian_momentum, defaults.hessian_momentum());
  fill(s.rule, name_of(kRules, defaults.rule()));
  fill(s.probe, name_of(kProbes, defaults.probe()));
  fill(s.probe_cycle, defaults.probe_cycle());
  fill(s.refresh_every, defaults.refresh_every());
  fill(s.curvature_batch, std::string(kWholeBatch));
  fill(s.curvature_control, std::string(kNoControl));
  fill(s.block_multiplier, kPlainMultiplier);
  fill(s.shift_guard, defaults.shift_guard());
  fill(s.blocks, std::string("module"));
  defaults.rule(by_name(kRules, *s.rule)).probe(by_name(kProbes, *s.probe));
  fill(s.refresh, name_of(kRefreshes, defaults.effective_refresh()));
  fill(s.curvature_floor, defaults.effective_curvature_floor());
}

SGDPHOptions sgd_ph_options(const Settings& s) {
  return SGDPHOptions(*s.lr)
      .weight_decay(*s.weight_decay)
      .momentum(*s.momentum)
      .eps(*s.eps)
      .lr_so(*s.lr_so)
      .hessian_momentum(*s.hessian_momentum)
      .curvature_floor(*s.curvature_floor)
      .rule(by_name(kRules, *s.rule))
      .probe(by_name(kProbes, *s.probe))
      .probe_cycle(*s.probe_cycle)
      .refresh(by_name(kRefreshes, *s.refresh))
      .refresh_every(*s.refresh_every)
      .shift_guard(*s.shift_guard)
      .seed(static_cast<uint64_t>(s.seed));
}

/// LibTorch's optimizers, and ours that need no curvature.
class FirstOrder : public TrainingOptimizer {
 public:
  explicit FirstOrder(std::unique_ptr<torch::optim::Optimizer> optimizer) : TrainingOptimizer(std::move(optimizer)) {}
  void backward(const at::Tensor& loss) override { loss.backward(); }
  bool step() override {
    base().step();
    return true;
  }
};

class Curvature : public TrainingOptimizer {
 public:
  explicit Curvature(std::unique_ptr<CurvatureOptimizer> optimizer)
      : TrainingOptimizer(std::move(optimizer)),
        curvature_(static_cast<CurvatureOptimizer&>(base())),
        sgd_ph_(dynamic_cast<SGDPH*>(&base())) {}

  void backward(const at::Tensor& loss) override { curvature_.backward(loss); }
  bool curvature_due() override { return curvature_.curvature_due(); }
  void update_curvature(const at::Tensor& loss) override { curvature_.update_curvature(loss); }
  bool step() override {
    base().step();
    return sgd_ph_ == nullptr || sgd_ph_->last_step().applied;
  }
  std::string describe() const override {
    if (sgd_ph_ == nullptr) return "";
    const auto partition = sgd_ph_->partition();
    return fmt::format("{} of {} parameters are blocks", partition.blocks(), partition.entries.size());
  }

 private:
  CurvatureOptimizer& curvature_;
  SGDPH* sgd_ph_;
};

template <class Optimizer, class Options>
std::unique_ptr<TrainingOptimizer> first_order(const torch::nn::Module& model, const Options& options) {
  return std::make_unique<FirstOrder>(std::make_unique<Optimizer>(model.parameters(), options));
}

std::unique_ptr<TrainingOptimizer> make(const torch::nn::Module& model, const Settings& s) {
  if (s.opt == "sgdm") {
    return first_order<torch::optim::SGD>(
        model,
        torch::optim::SGDOptions(*s.lr).momentum(*s.momentum).weight_decay(*s.weight_decay).nesterov(*s.nesterov));
  }
  if (s.opt == "adam") {
    return first_order<torch::optim::Adam>(model, adam_options<torch::optim::AdamOptions>(s).amsgrad(*s.amsgrad));
  }
  if (s.opt == "adamw") {
    return first_order<torch::optim::AdamW>(model, adam_options<torch::optim::AdamWOptions>(s).amsgrad(*s.amsgrad));
  }
  if (s.opt == "adabelief") {
    return first_order<AdaBelief>(
        model,
        adam_options<AdaBeliefOptions>(s).amsgrad(*s.amsgrad).weight_decouple(*s.weight_decouple).rectify(*s.rectify));
  }
  if (s.opt == "apollo") {
    return first_order<Apollo>(
        model, ApolloOptions(*s.lr)
                   .beta(*s.beta1)
                   .eps(*s.eps)
                   .rebound(*s.rebound)
                   .warmup(*s.warmup_steps)
                   .weight_decay(*s.weight_decay)
                   .weight_decay_type(*s.weight_decay_type));
  }
  if (s.opt == "adahessian") {
    return std::make_unique<Curvature>(std::make_unique<AdaHessian>(
        model.parameters(),
        adam_options<AdaHessianOptions>(s).hessian_power(*s.hessian_power).seed(static_cast<uint64_t>(s.seed))));
  }
  const auto options = sgd_ph_options(s);
  auto optimizer = *s.blocks == "module" ? std::make_unique<SGDPH>(model, options)
                                         : std::make_unique<SGDPH>(model.parameters(), options);
  optimizer->set_curvature_filter(curvature_control(s));
  return std::make_unique<Curvature>(std::move(optimizer));
}

}  // namespace

double TrainingOptimizer::lr() const {
  return optimizer_->param_groups().front().options().get_lr();
}

std::string TrainingOptimizer::save() const {
  torch::serialize::OutputArchive archive;
  optimizer_->save(archive);
  std::ostringstream out;
  archive.save_to(out);
  return out.str();
}

void TrainingOptimizer::load(const std::string& bytes) {
  std::istringstream in(bytes);
  torch::serialize::InputArchive archive;
  archive.load_from(in);
  optimizer_->load(archive);
}

void fill_optimizer_defaults(Settings& s) {
  optimizer_info(s.opt);
  if (s.opt == "sgdm") {
    fill(s.lr, 0.1);
    fill(s.momentum, 0.9);
    fill(s.weight_decay, 0.);
    fill(s.nesterov, false);
  } else if (s.opt == "adam") {
    const torch::optim::AdamOptions defaults;
    fill_adam(s, defaults);
    fill(s.amsgrad, defaults.amsgrad());
  } else if (s.opt == "adamw") {
    const torch::optim::AdamWOptions defaults;
    fill_adam(s, defaults);
    fill(s.amsgrad, defaults.amsgrad());
  } else if (s.opt == "adabelief") {
    const AdaBeliefOptions defaults;
    fill_adam(s, defaults);
    fill(s.amsgrad, defaults.amsgrad());
    fill(s.weight_decouple, defaults.weight_decouple());
    fill(s.rectify, defaults.rectify());
  } else if (s.opt == "adahessian") {
    const AdaHessianOptions defaults;
    fill_adam(s, defaults);
    fill(s.hessian_power, defaults.hessian_power());
    fill(s.curvature_batch, std::string(kWholeBatch));
  } else if (s.opt == "apollo") {
    ApolloOptions defaults;
    fill(s.lr, defaults.lr());
    fill(s.weight_decay, defaults.weight_decay());
    fill(s.beta1, defaults.beta());
    fill(s.eps, defaults.eps());
    fill(s.rebound, defaults.rebound());
    fill(s.warmup_steps, defaults.warmup());
    fill(s.weight_decay_type, defaults.rebound(*s.rebound).effective_weight_decay_type());
  } else {
    fill_sgd_ph(s);
  }
}

std::unique_ptr<TrainingOptimizer> make_optimizer(const torch::nn::Module& model, const Settings& settings) {
  try {
    return make(model, settings);
  } catch (const c10::Error& error) {
    // The optimizers' own checks name option, value and bound.
    throw UserError(error.what_without_backtrace());
  }
}

}  // namespace sgdph::lab
