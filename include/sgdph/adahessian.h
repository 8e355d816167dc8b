#pragma once

#include <sgdph/api.h>
#include <sgdph/curvature_optimizer.h>

namespace sgdph {

/// Options of AdaHessian, named and defaulted as in the authors' code; `seed` is ours, of the random probes.
struct SGDPH_API AdaHessianOptions : public detail::OptionsBase<AdaHessianOptions> {
  using betas_t = std::tuple<double, double>;
  AdaHessianOptions(double lr = 0.15) : lr_(lr) {}

  TORCH_ARG(double, lr);
  TORCH_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-4;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(double, hessian_power) = 1;
  TORCH_ARG(uint64_t, seed) = 0;  ///< optimizer-wide

 public:
  void visit(detail::FieldVisitor& visitor) override;
};

struct SGDPH_API AdaHessianParamState : public detail::StateBase<AdaHessianParamState> {
  TORCH_ARG(int64_t, step) = 0;
  TORCH_ARG(at::Tensor, exp_avg) = {};
  TORCH_ARG(at::Tensor, exp_hessian_diag_sq) = {};

 public:
  void visit(detail::FieldVisitor& visitor) override;
};

/// AdaHessian (Yao et al. 2020), the rule of the authors' image classification code: Adam with |z * (H z)| in place of
/// the gradient in the second moment, one full-network product per step with random signs z. Convolution kernels use
/// the mean over the kernel. Deviation: the original leaves 3-D parameters undefined; here every parameter of three or
/// more dimensions is averaged over all but the first two.
class SGDPH_API AdaHessian
    : public OptimizerOf<AdaHessian, AdaHessianOptions, AdaHessianParamState, CurvatureOptimizer> {
 public:
  static constexpr const char* kName = "AdaHessian";
  using OptimizerOf::OptimizerOf;

 protected:
  void update() override;
  std::vector<DueParameter> due() const override;
  Probes probes_of(const DueParameter& due) const override;
  bool joint() const override { return true; }
};

}  // namespace sgdph
