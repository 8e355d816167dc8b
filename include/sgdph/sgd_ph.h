#pragma once

#include <sgdph/curvature_optimizer.h>
#include <sgdph/detail/rotation.h>
#include <sgdph/partition.h>
#include <sgdph/sgd_ph_options.h>
#include <sgdph/sgd_ph_state.h>

namespace torch::nn {
class Module;
template <typename Contained>
class ModuleHolder;
}  // namespace torch::nn

namespace sgdph {

/// What a step did.
struct StepSummary {
  struct RefreshedBlock {
    std::string name;
    at::Tensor parameter;
    at::Tensor estimate;  ///< z * (H z) of this refresh, signed, before rectification and smoothing
  };

  int64_t step = 0;      ///< steps applied so far
  bool applied = false;  ///< false: a non-finite gradient or curvature was met and nothing was changed
  std::vector<RefreshedBlock> blocks_refreshed;
  int64_t products = 0;    ///< Hessian-vector products, those of the shift guard included
  int64_t non_finite = 0;  ///< non-finite values met in gradients and curvature
};

/// SGD with Partial Hessian (Sun, Yong, Zhang, "SGD with Partial Hessian for Deep Neural Networks Optimization").
///
/// Channel-wise 1-D parameters ("blocks") take the step lr * (lr_so * m / (|h| + eps) + weight_decay * w), where m is
/// the gradient's momentum and h = z * d(g . z)/dw a curvature estimate of the block's own Hessian, smoothed over
/// steps; everything else takes SGD with momentum. For the paper's probe z = 1, h is the block's *row sum*: it equals
/// the diagonal only if the block is diagonal, which it is not (docs/sgd-ph.md). Both published update rules, other
/// probes and other refresh schedules are options.
///
/// Where we deviate from the published code: the product for the excluded last parameter is skipped; blocks that are
/// invariant to a common shift become first-order (`shift_guard`); a non-finite step changes nothing.
///
///   sgdph::SGDPH optimizer(*model, sgdph::SGDPHOptions(0.01).weight_decay(5e-3));
///   optimizer.zero_grad();
///   auto loss = torch::nn::functional::cross_entropy(model->forward(x), y);
///   optimizer.backward(loss);
///   optimizer.step();
class SGDPH : public CurvatureOptimizer {
 public:
  using CurvatureFilter = std::function<at::Tensor(const at::Tensor& curvature)>;

  /// Blocks are all 1-D parameters, as published; under Rule::Reference the last of them is first-order.
  explicit SGDPH(std::vector<at::Tensor> parameters, SGDPHOptions defaults = {});
  explicit SGDPH(std::vector<torch::optim::OptimizerParamGroup> groups, SGDPHOptions defaults = {});
  /// Blocks by module type: gain and shift of norm layers, weight-norm gain, convolution bias. No "last" is singled
  /// out.
  explicit SGDPH(const torch::nn::Module& module, SGDPHOptions defaults = {});
  template <class Contained>
  explicit SGDPH(const torch::nn::ModuleHolder<Contained>& module, SGDPHOptions defaults = {})
      : SGDPH(static_cast<const torch::nn::Module&>(*module), std::move(defaults)) {}

  /// Which parameters are blocks now, and why.
  Partition partition() const;

  const StepSummary& last_step() const noexcept { return summary_; }

  /// What is kept for a parameter; null if nothing is yet.
  const SGDPHParamState* param_state(const at::Tensor& parameter) const {
    return find_state_of<SGDPHParamState>(parameter);
  }

  /// A function applied to a block's curvature (rectified, bias-corrected, eps included) before it is inverted, for
  /// studies; null turns it off.
  void set_curvature_filter(CurvatureFilter filter) { curvature_filter_ = std::move(filter); }

 protected:
  void update() override;
  std::unique_ptr<torch::optim::OptimizerParamState> make_state() const override;
  std::unique_ptr<detail::Fields> progress() const override;
  void set_progress(detail::Fields& progress) override;
  void check_progress(const detail::Fields& progress) const override;
  void groups_changed() override;
  Request curvature_request() override;
  void measure(
      const Request& request, const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& all,
      bool retain_graph) override;

 private:
  /// A parameter's place in the optimizer and its role.
  struct Slot {
    at::Tensor parameter;
    size_t group = 0;
    std::string name;
    bool candidate = false;  ///< a block unless group option, "last" rule or guard say otherwise
    bool last = false;       ///< the last candidate
    std::string kind;        ///< what it is, for `partition`
  };
  /// A block's curvature as measured for the step under way.
  struct Measured {
    size_t slot = 0;
    at::Tensor estimate;
    // For the shift guard; undefined when it does not ask.
    at::Tensor random_product;
    at::Tensor gradient;
  };

  const SGDPHOptions& wide() const;
  const SGDPHOptions& options_of(const Slot& slot) const;

  // Which parameters are blocks, and which are due (sgd_ph_blocks.cpp).
  bool excludes_last() const;
  bool is_marked(const Slot& slot) const;
  bool is_block(const Slot& slot) const;
  bool refresh_step() const;
  std::vector<size_t> rotation_members() const;
  std::vector<size_t> due() const;

  // Measuring (sgd_ph_curvature.cpp).
  bool wants_guard(const Slot& slot) const;
  at::Tensor probe_of(size_t slot) const;
  Measured measure_block(size_t slot, const at::Tensor& gradient, bool retain_graph) const;
  int64_t count_non_finite() const;
  int64_t products_done() const;
  void forget_measurements();

  // The step (sgd_ph.cpp).
  bool published_schedule() const;
  std::string absorb_measurements();
  std::vector<at::Tensor> block_curvatures();
  bool prepare_step(std::vector<at::Tensor>& curvatures);

  std::vector<Slot> slots_;
  bool by_module_ = false;
  CurvatureFilter curvature_filter_;

  int64_t step_ = 0;  ///< steps applied
  detail::Rotation rotation_;

  // Of the step under way; never saved.
  bool measured_ = false;
  bool usable_ = false;  ///< whether the measurements are finite
  std::vector<Measured> measurements_;
  double gradient_scale_ = 0;

  StepSummary summary_;
};

}  // namespace sgdph
