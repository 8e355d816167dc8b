#pragma once

#include <sgdph/api.h>
#include <sgdph/optimizer.h>

namespace sgdph {

/// Options of AdaBelief, named and defaulted as in the authors' package 0.2.0.
struct SGDPH_API AdaBeliefOptions : public detail::OptionsBase<AdaBeliefOptions> {
  using betas_t = std::tuple<double, double>;
  AdaBeliefOptions(double lr = 1e-3) : lr_(lr) {}

  TORCH_ARG(double, lr);
  TORCH_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-16;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(bool, amsgrad) = false;
  TORCH_ARG(bool, weight_decouple) = true;
  TORCH_ARG(bool, fixed_decay) = false;
  TORCH_ARG(bool, rectify) = true;
  TORCH_ARG(bool, degenerated_to_sgd) = true;

 public:
  void visit(detail::FieldVisitor& visitor) override;
};

struct SGDPH_API AdaBeliefParamState : public detail::StateBase<AdaBeliefParamState> {
  TORCH_ARG(int64_t, step) = 0;
  TORCH_ARG(at::Tensor, exp_avg) = {};
  TORCH_ARG(at::Tensor, exp_avg_var) = {};
  TORCH_ARG(at::Tensor, max_exp_avg_var) = {};

 public:
  void visit(detail::FieldVisitor& visitor) override;
};

/// AdaBelief (Zhuang et al. 2020), the rule of the authors' package 0.2.0: Adam whose second moment is that of the
/// gradient's deviation from its average, s <- b2 s + (1 - b2)(g - m)^2 + eps. The eps stays in s and so accumulates;
/// it is added once more outside the root. `rectify` adds RAdam's variance rectification.
class SGDPH_API AdaBelief : public OptimizerOf<AdaBelief, AdaBeliefOptions, AdaBeliefParamState> {
 public:
  static constexpr const char* kName = "AdaBelief";
  using OptimizerOf::OptimizerOf;

 protected:
  void update() override;
};

}  // namespace sgdph
