#pragma once

#include <sgdph/api.h>
#include <sgdph/detail/fields.h>

#include <torch/optim/schedulers/lr_scheduler.h>

#include <memory>
#include <vector>

namespace sgdph {

/// Linear warm-up before a schedule: call n < steps of `step()` gives lr * (start + (1 - start) * n / steps). The
/// schedule proper begins when the warm-up ends, as in torchvision's reference scripts.
struct Warmup {
  int64_t steps = 0;
  double start = 0.01;  ///< fraction of the learning rate at the first step
};

/// A learning rate as a closed-form function of the number n of `step()` calls (epochs or iterations, as the caller
/// pleases): lr(n) = base lr * factor, with the base lr of each group taken at construction. The constructor sets
/// lr(0). Saving keeps settings, count, base and current learning rates; loading restores them, in the optimizer too.
///
/// It refers to the optimizer, which is not to move or go meanwhile.
class SGDPH_API Scheduler : public torch::optim::LRScheduler {
 public:
  ~Scheduler() override;

  void save(torch::serialize::OutputArchive& archive) const;
  void load(torch::serialize::InputArchive& archive);

  /// `step()` calls so far.
  int64_t steps() const noexcept { return step_count_; }

 protected:
  /// A schedule without its warm-up: lr of a group `n` steps after the warm-up.
  class Shape : public detail::Fields {
   public:
    virtual const char* name() const = 0;
    virtual double lr(int64_t n, double base) const = 0;
    virtual void check() const = 0;
    virtual std::unique_ptr<Shape> clone() const = 0;
  };

  Scheduler(torch::optim::Optimizer& optimizer, std::unique_ptr<Shape> shape, Warmup warmup);

  std::vector<double> get_lrs() override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

SGDPH_API torch::serialize::OutputArchive& operator<<(
    torch::serialize::OutputArchive& archive, const Scheduler& scheduler);
SGDPH_API torch::serialize::InputArchive& operator>>(torch::serialize::InputArchive& archive, Scheduler& scheduler);

/// Times `gamma` every `step_size` steps.
class SGDPH_API StepLR : public Scheduler {
 public:
  StepLR(torch::optim::Optimizer& optimizer, int64_t step_size, double gamma = 0.1, Warmup warmup = {});

 private:
  struct Steps;
};

/// Times `gamma` at each milestone.
class SGDPH_API MultiStepLR : public Scheduler {
 public:
  MultiStepLR(
      torch::optim::Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1, Warmup warmup = {});

 private:
  struct Milestones;
};

/// From the base lr to `eta_min` along half a cosine over `t_max` steps; `eta_min` from then on.
class SGDPH_API CosineLR : public Scheduler {
 public:
  CosineLR(torch::optim::Optimizer& optimizer, int64_t t_max, double eta_min = 0, Warmup warmup = {});

 private:
  struct Cosine;
};

/// From the base lr to `eta_min` along a line over `t_max` steps; `eta_min` from then on.
class SGDPH_API LinearLR : public Scheduler {
 public:
  LinearLR(torch::optim::Optimizer& optimizer, int64_t t_max, double eta_min = 0, Warmup warmup = {});

 private:
  struct Line;
};

}  // namespace sgdph
