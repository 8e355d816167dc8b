#pragma once

#include <sgdph/api.h>
#include <sgdph/classifier.h>
#include <sgdph/curvature_optimizer.h>
#include <sgdph/partition.h>
#include <sgdph/sgd_ph_options.h>
#include <sgdph/sgd_ph_state.h>

namespace torch {
template <typename Key, typename Value>
class OrderedDict;
}

namespace torch::nn {
template <typename Contained>
class ModuleHolder;
}  // namespace torch::nn

namespace sgdph {

/// SGD with Partial Hessian (Sun, Yong, Zhang, "SGD with Partial Hessian for Deep Neural Networks Optimization").
///
/// Channel-wise 1-D parameters ("blocks") take the step lr * (lr_so * m / (|h| + eps) + weight_decay * w), where m is
/// the gradient's momentum and h = z * d(g . z)/dw a curvature estimate of the block's own Hessian, smoothed over
/// steps; everything else takes SGD with momentum. For the paper's probe z = 1, h is the block's *row sum*: it equals
/// the diagonal only if the block is diagonal, which it is not (docs/sgd-ph.md). Both published update rules, other
/// probes and other refresh schedules are options.
///
/// Where we deviate from the published code: the product for the excluded last parameter is skipped; blocks that are
/// invariant to a common shift become first-order (`shift_guard`); a non-finite gradient changes nothing, and a
/// non-finite estimate is not used.
///
///   sgdph::SGDPH optimizer(*model, sgdph::SGDPHOptions(0.01).weight_decay(5e-3));
///   optimizer.zero_grad();
///   auto loss = torch::nn::functional::cross_entropy(model->forward(x), y);
///   optimizer.backward(loss);
///   optimizer.step();
class SGDPH_API SGDPH : public CurvatureOptimizer {
 public:
  using CurvatureFilter = std::function<at::Tensor(const at::Tensor& curvature)>;

  /// Blocks are all 1-D parameters, as published; under Rule::Reference the last of them is first-order.
  explicit SGDPH(std::vector<at::Tensor> parameters, SGDPHOptions defaults = {});
  explicit SGDPH(std::vector<torch::optim::OptimizerParamGroup> groups, SGDPHOptions defaults = {});
  /// Blocks are what the classifier says, then by module type: channel-wise gain and shift of norm layers (also of a
  /// type named like one), weight-norm gain, convolution bias. No "last" is singled out.
  explicit SGDPH(const torch::nn::Module& module, SGDPHOptions defaults = {}, const Classifier& classifier = {});
  template <class Contained>
  explicit SGDPH(
      const torch::nn::ModuleHolder<Contained>& module, SGDPHOptions defaults = {}, const Classifier& classifier = {})
      : SGDPH(static_cast<const torch::nn::Module&>(*module), std::move(defaults), classifier) {}
  /// Tensors with names, of a TorchScript module say. Blocks are what the classifier says and nothing else; without
  /// one, all 1-D parameters, as published.
  explicit SGDPH(
      const torch::OrderedDict<std::string, at::Tensor>& named, SGDPHOptions defaults = {},
      const Classifier& classifier = {});
  SGDPH(SGDPH&& other) noexcept;
  ~SGDPH() override;

  /// Moves the parameters chosen into a new group with these options; names, roles and states stay. No decay on norms:
  ///   optimizer.group(sgdph::norms(), sgdph::SGDPHOptions(options).weight_decay(0));
  SGDPH& group(const Selector& selector, const SGDPHOptions& options);
  /// Chosen is what the classifier calls a block.
  SGDPH& group(const Classifier& classifier, const SGDPHOptions& options);

  /// Adds the parameters of a module, classified as by the constructor, in a group of their own; their names begin with
  /// `name`, as by `register_module`. Those the optimizer has already are left out. (Parameters that are added to an
  /// optimizer of a module by `add_param_group` are first-order.)
  SGDPH& add_module(
      const std::string& name, const torch::nn::Module& module, const SGDPHOptions& options,
      const Classifier& classifier = {});

  /// Which parameters are blocks now, and why.
  Partition partition() const;

  std::string describe() const override;

  /// What is kept for a parameter; null if nothing is yet.
  const SGDPHParamState* param_state(const at::Tensor& parameter) const;

  /// A function applied to a block's curvature (rectified, bias-corrected, eps included) before it is inverted, for
  /// studies; null turns it off.
  void set_curvature_filter(CurvatureFilter filter);

 protected:
  void update() override;
  void skip_update() override;
  std::unique_ptr<torch::optim::OptimizerParamState> make_state() const override;
  std::unique_ptr<detail::Fields> progress() const override;
  void set_progress(detail::Fields& progress) override;
  std::vector<std::string> names_in(const detail::Fields& progress) const override;
  void set_matching_progress(const detail::Fields& progress) override;
  void check_progress(const detail::Fields& progress) const override;
  std::string name_of(const at::Tensor& parameter) const override;
  void groups_changed() override;
  std::vector<DueParameter> due() const override;
  Probes probes_of(const DueParameter& due) const override;
  bool joint() const override;

 private:
  struct Impl;
  SGDPH(
      std::unique_ptr<Impl>&& impl, std::vector<torch::optim::OptimizerParamGroup> groups,
      const SGDPHOptions& defaults);
  SGDPH(std::unique_ptr<Impl>&& impl, const SGDPHOptions& defaults);

  std::unique_ptr<Impl> impl_;
};

}  // namespace sgdph
