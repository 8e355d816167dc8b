#include <sgdph/schedulers.h>

#include <torch/serialize/archive.h>

#include <algorithm>
#include <cmath>

namespace sgdph {
namespace {

constexpr int64_t kSchedulerFormat = 1;
constexpr double kPi = 3.14159265358979323846;

/// What a scheduler's archive holds besides its shape.
struct SchedulerProgress final : public detail::Fields {
  int64_t steps = 0;
  Warmup warmup;
  std::vector<double> base_lrs;
  std::vector<double> lrs;

  void visit(detail::FieldVisitor& visitor) override {
    visitor("steps", steps);
    visitor("warmup_steps", warmup.steps);
    visitor("warmup_start", warmup.start);
    visitor("base_lrs", base_lrs);
    visitor("lrs", lrs);
  }
};

void check_warmup(const Warmup& warmup) {
  TORCH_CHECK(warmup.steps >= 0, "Scheduler: warm-up steps must be at least 0, got ", warmup.steps);
  TORCH_CHECK(
      warmup.start >= 0 && warmup.start <= 1, "Scheduler: warm-up start must lie in [0, 1], got ", warmup.start);
}

void check_gamma(const char* name, double gamma) {
  TORCH_CHECK(gamma > 0 && std::isfinite(gamma), name, ": gamma must be finite and greater than 0, got ", gamma);
}

std::vector<double> current_lrs(const torch::optim::Optimizer& optimizer) {
  std::vector<double> lrs;
  for (const auto& group : optimizer.param_groups()) lrs.push_back(group.options().get_lr());
  return lrs;
}

void set_lrs(torch::optim::Optimizer& optimizer, const std::vector<double>& lrs) {
  for (size_t i = 0; i < lrs.size(); ++i) optimizer.param_groups()[i].options().set_lr(lrs[i]);
}

}  // namespace

struct SGDPH_LOCAL Scheduler::Impl {
  torch::optim::Optimizer& optimizer;
  std::unique_ptr<Shape> shape;
  Warmup warmup;
  std::vector<double> base_lrs;

  std::vector<double> lrs_at(int64_t n) {
    const auto now = current_lrs(optimizer);
    // A group added since brings its own base.
    for (size_t i = base_lrs.size(); i < now.size(); ++i) base_lrs.push_back(now[i]);
    std::vector<double> lrs;
    for (const double base : base_lrs) {
      const double progress = warmup.steps > 0 ? static_cast<double>(n) / static_cast<double>(warmup.steps) : 1;
      lrs.push_back(
          n < warmup.steps ? base * (warmup.start + (1 - warmup.start) * progress) : shape->lr(n - warmup.steps, base));
    }
    return lrs;
  }
};

Scheduler::Scheduler(torch::optim::Optimizer& optimizer, std::unique_ptr<Shape> shape, Warmup warmup)
    : LRScheduler(optimizer), impl_(new Impl{optimizer, std::move(shape), warmup, current_lrs(optimizer)}) {
  check_warmup(impl_->warmup);
  impl_->shape->check();
  set_lrs(optimizer, impl_->lrs_at(0));
}

Scheduler::~Scheduler() = default;

std::vector<double> Scheduler::get_lrs() {
  // LibTorch counts the step after it has asked for the learning rates of it.
  return impl_->lrs_at(static_cast<int64_t>(step_count_) + 1);
}

void Scheduler::save(torch::serialize::OutputArchive& archive) const {
  archive.write("sgdph_format", c10::IValue(kSchedulerFormat));
  archive.write("sgdph_scheduler", c10::IValue(std::string(impl_->shape->name())));
  SchedulerProgress progress;
  progress.steps = steps();
  progress.warmup = impl_->warmup;
  progress.base_lrs = impl_->base_lrs;
  progress.lrs = current_lrs(impl_->optimizer);
  progress.save(archive);
  impl_->shape->save(archive);
}

void Scheduler::load(torch::serialize::InputArchive& archive) {
  c10::IValue name;
  TORCH_CHECK(
      archive.try_read("sgdph_scheduler", name) && name.isString(), impl_->shape->name(),
      ": the archive does not hold an sgdph scheduler");
  TORCH_CHECK(
      name.toStringRef() == impl_->shape->name(), impl_->shape->name(), ": the archive holds the scheduler ",
      name.toStringRef());
  c10::IValue format;
  TORCH_CHECK(
      archive.try_read("sgdph_format", format) && format.isInt() && format.toInt() <= kSchedulerFormat,
      impl_->shape->name(), ": the archive is of a newer version of sgdph; this one reads format ", kSchedulerFormat);
  SchedulerProgress progress;
  progress.load(archive);
  auto shape = impl_->shape->clone();
  shape->load(archive);
  shape->check();
  check_warmup(progress.warmup);
  const auto groups = impl_->optimizer.param_groups().size();
  TORCH_CHECK(
      progress.lrs.size() == groups && progress.base_lrs.size() <= groups && progress.steps >= 0, impl_->shape->name(),
      ": the archive has learning rates for ", progress.lrs.size(), " parameter groups, the optimizer has ", groups);

  impl_->shape = std::move(shape);
  impl_->warmup = progress.warmup;
  impl_->base_lrs = std::move(progress.base_lrs);
  step_count_ = static_cast<unsigned>(progress.steps);
  set_lrs(impl_->optimizer, progress.lrs);
}

torch::serialize::OutputArchive& operator<<(torch::serialize::OutputArchive& archive, const Scheduler& scheduler) {
  scheduler.save(archive);
  return archive;
}

torch::serialize::InputArchive& operator>>(torch::serialize::InputArchive& archive, Scheduler& scheduler) {
  scheduler.load(archive);
  return archive;
}

namespace {

/// Gives a shape its `clone`.
template <class Derived, class Shape, class Base = Shape>
class Cloneable : public Base {
 public:
  using Base::Base;
  std::unique_ptr<Shape> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
};

}  // namespace

struct SGDPH_LOCAL StepLR::Steps final : Cloneable<StepLR::Steps, Scheduler::Shape> {
  int64_t step_size;
  double gamma;

  Steps(int64_t step_size, double gamma) : step_size(step_size), gamma(gamma) {}
  const char* name() const override { return "StepLR"; }
  double lr(int64_t n, double base) const override {
    const int64_t passed = n / step_size;
    return base * std::pow(gamma, static_cast<double>(passed));
  }
  void check() const override {
    TORCH_CHECK(step_size >= 1, "StepLR: step_size must be at least 1, got ", step_size);
    check_gamma("StepLR", gamma);
  }
  void visit(detail::FieldVisitor& visitor) override {
    visitor("step_size", step_size);
    visitor("gamma", gamma);
  }
};

StepLR::StepLR(torch::optim::Optimizer& optimizer, int64_t step_size, double gamma, Warmup warmup)
    : Scheduler(optimizer, std::make_unique<Steps>(step_size, gamma), warmup) {}

struct SGDPH_LOCAL MultiStepLR::Milestones final : Cloneable<MultiStepLR::Milestones, Scheduler::Shape> {
  std::vector<int64_t> milestones;
  double gamma;

  Milestones(std::vector<int64_t> milestones, double gamma) : milestones(std::move(milestones)), gamma(gamma) {}
  const char* name() const override { return "MultiStepLR"; }
  double lr(int64_t n, double base) const override {
    const auto passed = std::upper_bound(milestones.begin(), milestones.end(), n) - milestones.begin();
    return base * std::pow(gamma, static_cast<double>(passed));
  }
  void check() const override {
    TORCH_CHECK(
        std::is_sorted(milestones.begin(), milestones.end()) && (milestones.empty() || milestones.front() >= 0),
        "MultiStepLR: milestones must not be negative and must increase, got ", at::IntArrayRef(milestones));
    check_gamma("MultiStepLR", gamma);
  }
  void visit(detail::FieldVisitor& visitor) override {
    visitor("milestones", milestones);
    visitor("gamma", gamma);
  }
};

MultiStepLR::MultiStepLR(
    torch::optim::Optimizer& optimizer, std::vector<int64_t> milestones, double gamma, Warmup warmup)
    : Scheduler(optimizer, std::make_unique<Milestones>(std::move(milestones), gamma), warmup) {}

namespace {

/// What falls from the base lr to `eta_min` in `t_max` steps.
template <class Shape>
struct Fall : Shape {
  int64_t t_max;
  double eta_min;

  Fall(int64_t t_max, double eta_min) : t_max(t_max), eta_min(eta_min) {}
  /// What is left of the way after a part of the steps.
  virtual double left(double part) const = 0;
  double lr(int64_t n, double base) const override {
    if (n >= t_max) return eta_min;
    return eta_min + (base - eta_min) * left(static_cast<double>(n) / static_cast<double>(t_max));
  }
  void check() const override {
    TORCH_CHECK(t_max >= 1, this->name(), ": t_max must be at least 1, got ", t_max);
    TORCH_CHECK(
        eta_min >= 0 && std::isfinite(eta_min), this->name(), ": eta_min must be finite and at least 0, got ", eta_min);
  }
  void visit(detail::FieldVisitor& visitor) override {
    visitor("t_max", t_max);
    visitor("eta_min", eta_min);
  }
};

}  // namespace

struct SGDPH_LOCAL CosineLR::Cosine final : Cloneable<CosineLR::Cosine, Scheduler::Shape, Fall<Scheduler::Shape>> {
  using Cloneable::Cloneable;
  const char* name() const override { return "CosineLR"; }
  double left(double part) const override { return (1 + std::cos(kPi * part)) / 2; }
};

CosineLR::CosineLR(torch::optim::Optimizer& optimizer, int64_t t_max, double eta_min, Warmup warmup)
    : Scheduler(optimizer, std::make_unique<Cosine>(t_max, eta_min), warmup) {}

struct SGDPH_LOCAL LinearLR::Line final : Cloneable<LinearLR::Line, Scheduler::Shape, Fall<Scheduler::Shape>> {
  using Cloneable::Cloneable;
  const char* name() const override { return "LinearLR"; }
  double left(double part) const override { return 1 - part; }
};

LinearLR::LinearLR(torch::optim::Optimizer& optimizer, int64_t t_max, double eta_min, Warmup warmup)
    : Scheduler(optimizer, std::make_unique<Line>(t_max, eta_min), warmup) {}

}  // namespace sgdph
