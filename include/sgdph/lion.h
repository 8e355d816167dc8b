#pragma once

#include <sgdph/api.h>
#include <sgdph/optimizer.h>

namespace sgdph {

/// Options of Lion, named and defaulted as in the authors' code.
struct SGDPH_API LionOptions : public detail::OptionsBase<LionOptions> {
  using betas_t = std::tuple<double, double>;
  LionOptions(double lr = 1e-4) : lr_(lr) {}

  TORCH_ARG(double, lr);
  TORCH_ARG(betas_t, betas) = std::make_tuple(0.9, 0.99);
  TORCH_ARG(double, weight_decay) = 0;

 public:
  void visit(detail::FieldVisitor& visitor) override;
};

struct SGDPH_API LionParamState : public detail::StateBase<LionParamState> {
  TORCH_ARG(at::Tensor, exp_avg) = {};

 public:
  void visit(detail::FieldVisitor& visitor) override;
};

/// Lion (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms"): every element moves by lr in the direction
/// of the sign of an average of gradients, w <- w - lr (sign(b1 m + (1 - b1) g) + weight_decay w), and the momentum is
/// taken further afterwards with another weight, m <- b2 m + (1 - b2) g.
class SGDPH_API Lion : public OptimizerOf<Lion, LionOptions, LionParamState> {
 public:
  static constexpr const char* kName = "Lion";
  using OptimizerOf::OptimizerOf;

 protected:
  void update() override;
};

}  // namespace sgdph
