#pragma once

#include <sgdph/api.h>
#include <sgdph/backward_options.h>
#include <sgdph/optimizer.h>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sgdph {

/// A parameter whose curvature is due, and its position in optimizer order.
struct DueParameter {
  size_t position = 0;
  at::Tensor parameter;
  bool here = true;  ///< false: other ranks measure it
  double share = 1;  ///< of the ranks, those that measure it; the same on all of them
};

/// What a due parameter is multiplied by.
struct Probes {
  at::Tensor probe;   ///< z; the estimate is z * (H z)
  at::Tensor second;  ///< of a second product, which asks for the gradient as well; undefined: none
};

/// What was measured of a due parameter: sums over the calls before the step, averaged over the ranks that measure it.
struct Measurement {
  DueParameter of;
  at::Tensor estimate;               ///< z * (H z), signed; undefined if no loss reached the parameter
  at::Tensor second_product;         ///< H times the second probe; undefined when there is none
  at::Tensor gradient;               ///< with the second product
  at::ScalarType type = at::kFloat;  ///< the coarsest on the way to the gradient, with the second product
  bool has_graph = false;            ///< false: not measurable, since some gradient could not be differentiated
  std::string why;                   ///< why it is not measurable, if an operator said so on this rank
  bool finite = true;                ///< false: the estimate is not to be used
};

struct Measurements {
  bool spoiled = false;            ///< parameters or states changed before all calls: nothing was measured
  bool measured = false;           ///< a call measured, be it nothing because its loss reached no due parameter
  std::vector<Measurement> found;  ///< of the parameters some loss reached
  int64_t products = 0;            ///< done by this process
  double gradient_scale = 0;  ///< of the losses' gradients, the largest root mean square; if there is a second probe
};

/// An optimizer that measures curvature by Hessian-vector products: the interface SGDPH and AdaHessian share.
///
/// Curvature accumulates as gradients do. All calls of `backward` since the last `step`, `zero_grad` or `discard` form
/// a window, and the step's curvature is that of the sum of their losses: n calls with `loss / n` measure what one call
/// with the mean does. What is due, and the probes, are settled by the first call of a window that measures.
///
/// After plain `loss.backward({}, {}, /*create_graph=*/true)` the step measures from the gradients as they are, and
/// leaves them without their graph; `backward` costs less, since it records what the product needs alone.
class SGDPH_API CurvatureOptimizer : public OptimizerBase {
 public:
  using ProbeSource = std::function<at::Tensor(const at::Tensor& parameter)>;
  using AllReduce = std::function<void(at::Tensor& tensor)>;

  CurvatureOptimizer(CurvatureOptimizer&& other) noexcept;
  ~CurvatureOptimizer() override;

  /// `loss.backward()`, for every leaf and with all hooks, and the measurement of the curvature that is due. The loss's
  /// graph is freed unless it is to be retained.
  void backward(const at::Tensor& loss, bool retain_graph = false);
  void backward(const at::Tensor& loss, const BackwardOptions& options);

  /// Measures the curvature that is due from any loss, of a smaller batch say, and leaves gradients and the loss's
  /// graph alone, so that a plain `loss.backward()` may follow. `backward` adds only gradients from then on until the
  /// step; after a `backward` that has measured it is an error, since that curvature would count twice.
  void update_curvature(const at::Tensor& loss, const BackwardOptions& options = {});

  /// Clears the gradients and ends the window. (The module's `zero_grad` ends it as well.)
  void zero_grad() {
    OptimizerBase::zero_grad();
    discard();
  }
  /// As LibTorch 2's: whether gradients are let go or set to zero.
  template <class Base = OptimizerBase>
  auto zero_grad(bool set_to_none) -> decltype(std::declval<Base&>().zero_grad(set_to_none)) {
    Base::zero_grad(set_to_none);
    discard();
  }
  /// Ends the window: what was measured for the step under way is forgotten. Gradients are left alone.
  void discard();

  /// Whether curvature is due for the step under way, so that `backward` or `update_curvature` would measure.
  bool curvature_due() const;

  /// Supplies the probe of a parameter, of its shape and type, once for each window; null restores the built-in one.
  void set_probe_source(ProbeSource source);

  /// Averages a tensor over ranks; applied to curvature before it is rectified, once for a step in which curvature is
  /// due, to a tensor whose size does not depend on what this rank's losses reached. The function either changes its
  /// argument in place or returns the average; null restores the default, which does nothing.
  template <class Function>
  void set_all_reduce(Function function) {
    if constexpr (std::is_null_pointer_v<Function>) {
      use_all_reduce(nullptr);
    } else if constexpr (std::is_same_v<std::invoke_result_t<Function&, at::Tensor&>, at::Tensor>) {
      const std::function<at::Tensor(at::Tensor&)> average = std::move(function);
      use_all_reduce(average ? [average](at::Tensor& tensor) { tensor = average(tensor); } : AllReduce());
    } else {
      use_all_reduce(std::move(function));
    }
  }

  /// Which of how many ranks this is, for work that ranks divide (Refresh::Spread); 0 of 1 until it is called, and not
  /// saved. With more than one, `set_all_reduce` has to be called as well. Call it between steps.
  void set_ranks(int64_t rank, int64_t ranks);

 protected:
  CurvatureOptimizer(
      const char* name, std::vector<torch::optim::OptimizerParamGroup> groups,
      std::unique_ptr<torch::optim::OptimizerOptions> defaults);

  /// What is due for the step under way. A function of options and state, the same on every rank but for `here`.
  virtual std::vector<DueParameter> due() const = 0;
  /// Drawn once for a window.
  virtual Probes probes_of(const DueParameter& due) const = 0;
  /// Whether one product serves all parameters that are due.
  virtual bool joint() const = 0;

  /// Ends the window of a step that is applied, and returns what was measured, averaged over ranks. Estimates that are
  /// not finite are counted in the summary, and the third in a row of a parameter gives a notice. Throws, before
  /// anything changes, if gradients came in by other ways as well.
  Measurements close_window();
  /// Ends the window; ranks are met as by `close_window`.
  void skip_update() override;
  /// Says once for each parameter that it is not measurable, and why as far as that is known.
  void notice_not_measurable(const Measurements& measurements);
  /// How many estimates of the parameter in a row were not finite.
  int64_t rejected_in_a_row(const at::Tensor& parameter) const;

  void groups_changed() override;

  int64_t rank() const;
  int64_t ranks() const;
  bool has_probe_source() const;
  at::Tensor probe_from_source(const at::Tensor& parameter) const;
  /// All parameters that require a gradient, in optimizer order.
  std::vector<at::Tensor> trainable_parameters() const;

 private:
  void use_all_reduce(AllReduce function);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sgdph
