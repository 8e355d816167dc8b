#pragma once

#include <sgdph/optimizer.h>

#include <functional>
#include <type_traits>
#include <utility>

namespace sgdph {

/// An optimizer that measures curvature by Hessian-vector products: the interface SGDPH and AdaHessian share.
class CurvatureOptimizer : public OptimizerBase {
 public:
  using ProbeSource = std::function<at::Tensor(const at::Tensor& parameter)>;
  using AllReduce = std::function<void(at::Tensor& tensor)>;

  /// Adds the loss's gradients into `.grad` of this optimizer's parameters, as `loss.backward()` would, and measures
  /// the curvature that is due. With several calls before a step, the first one measures. The loss's graph is freed
  /// unless `retain_graph` is set (for a second optimizer on the same loss, say).
  void backward(const at::Tensor& loss, bool retain_graph = false);

  /// Measures the curvature that is due from any loss, of a smaller batch say, and leaves gradients and the loss's
  /// graph alone, so that a plain `loss.backward()` may follow.
  void update_curvature(const at::Tensor& loss);

  /// Whether `backward` or `update_curvature` would measure curvature if called now.
  bool curvature_due();

  /// Supplies the probe of a parameter, of its shape and type; null restores the built-in one.
  void set_probe_source(ProbeSource source) { probe_source_ = std::move(source); }

  /// Averages a tensor over ranks; applied to curvature before it is rectified. The function either changes its
  /// argument in place or returns the average; null restores the default, which does nothing.
  template <class Function>
  void set_all_reduce(Function function) {
    if constexpr (std::is_null_pointer_v<Function>) {
      all_reduce_ = nullptr;
    } else if constexpr (std::is_same_v<std::invoke_result_t<Function&, at::Tensor&>, at::Tensor>) {
      const std::function<at::Tensor(at::Tensor&)> average = std::move(function);
      all_reduce_ = average ? [average](at::Tensor& tensor) { tensor = average(tensor); } : AllReduce();
    } else {
      all_reduce_ = std::move(function);
    }
  }

 protected:
  using OptimizerBase::OptimizerBase;

  /// The parameters whose gradients the due products start from; empty when nothing is due. `with_scale` asks for the
  /// gradients of all parameters, because the measurement wants to compare with them.
  struct Request {
    std::vector<at::Tensor> parameters;
    bool with_scale = false;
  };
  virtual Request curvature_request() = 0;

  /// Measures from gradients that carry a graph. `gradients` go with the request's parameters and are undefined where
  /// the loss does not depend on one; `all` are those of every parameter if the request asked for
  /// it. Throws before it changes anything.
  virtual void measure(
      const Request& request, const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& all,
      bool retain_graph) = 0;

  bool has_probe_source() const { return static_cast<bool>(probe_source_); }
  at::Tensor probe_from_source(const at::Tensor& parameter) const;
  void all_reduce(at::Tensor& tensor) const;
  /// All parameters that require a gradient, in optimizer order.
  std::vector<at::Tensor> trainable_parameters() const;

 private:
  ProbeSource probe_source_;
  AllReduce all_reduce_;
};

}  // namespace sgdph
