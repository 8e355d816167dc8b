#pragma once

#include <sgdph/api.h>
#include <sgdph/optimizer.h>

namespace sgdph {

/// Options of Apollo, named and defaulted as in the authors' code.
struct SGDPH_API ApolloOptions : public detail::OptionsBase<ApolloOptions> {
  ApolloOptions(double lr = 0.01) : lr_(lr) {}

  TORCH_ARG(double, lr);
  TORCH_ARG(double, beta) = 0.9;
  TORCH_ARG(double, eps) = 1e-4;
  TORCH_ARG(std::string, rebound) = "constant";    ///< or "belief"
  TORCH_ARG(int64_t, warmup) = 500;                ///< steps of linear warm-up
  TORCH_ARG(std::optional<double>, init_lr) = {};  ///< of the first step; unset: lr / 1000
  TORCH_ARG(double, weight_decay) = 0;
  /// "L2", "decoupled" or "stable"; unset: "L2" with rebound "constant", "decoupled" with "belief".
  TORCH_ARG(std::optional<std::string>, weight_decay_type) = {};

 public:
  std::string effective_weight_decay_type() const;

  void visit(detail::FieldVisitor& visitor) override;
  void fill_unset() override;
};

struct SGDPH_API ApolloParamState : public detail::StateBase<ApolloParamState> {
  TORCH_ARG(int64_t, step) = 0;
  TORCH_ARG(at::Tensor, exp_avg_grad) = {};
  TORCH_ARG(at::Tensor, approx_hessian) = {};
  TORCH_ARG(at::Tensor, update) = {};

 public:
  void visit(detail::FieldVisitor& visitor) override;
};

/// Apollo (Ma 2020), the rule of the authors' current code: a diagonal quasi-Newton method whose curvature B follows
/// the weak secant equation. During warm-up the learning rate grows from `init_lr` to the lr at construction, and a
/// scheduler has no effect. "constant" bounds |B| from below by 0.01; lr 1 in older texts belongs to a bound of 1.
class SGDPH_API Apollo : public OptimizerOf<Apollo, ApolloOptions, ApolloParamState> {
 public:
  static constexpr const char* kName = "Apollo";
  explicit Apollo(std::vector<at::Tensor> parameters, ApolloOptions defaults = {});
  explicit Apollo(std::vector<torch::optim::OptimizerParamGroup> groups, ApolloOptions defaults = {});

 protected:
  void update() override;
  std::unique_ptr<detail::Fields> progress() const override;
  void set_progress(detail::Fields& progress) override;
  void check_progress(const detail::Fields& progress) const override;
  void groups_changed() override;

 private:
  std::vector<double> base_lrs_;  ///< of each group, at construction
};

}  // namespace sgdph
