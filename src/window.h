#pragma once

#include <sgdph/curvature_optimizer.h>

#include "autograd.h"

#include <array>
#include <string>
#include <vector>

namespace sgdph {

/// How much a call's products count: r / s for a loss that represents r and is scaled by s.
struct Weight {
  explicit Weight(const BackwardOptions& options);
  Weight size() const;  ///< without its sign
  double factor = 1;
  at::Tensor divisor;  ///< undefined: none
};

/// What is gathered for one step: the due parameters with their probes, and signed sums of their products over the
/// calls. H is linear in the loss and |.| is not, so everything that is not linear waits for the step. Never saved.
class Window {
 public:
  // Settles what is due.
  bool is_open() const noexcept { return open_; }
  void open(std::vector<DueParameter> due, std::vector<Probes> probes, bool joint);
  const std::vector<DueParameter>& due() const noexcept { return due_; }
  bool has_second_probe() const;

  /// Adds the products of one loss. What was found goes with `due`, carries a graph, and is undefined where the loss
  /// does not reach the parameter or it is not asked for; the sizes are those of all gradients, if there is a second
  /// probe. The graph stays with `retain_graph`. If it throws, nothing was added.
  void add(const GraphGradients& gradients, const Weight& weight, bool retain_graph);

  /// Averages the sums over ranks as one flat tensor, whose size `due` and `probes` determine. What some ranks measure
  /// for all becomes their average; false if others did than `due` says.
  bool average(const CurvatureOptimizer::AllReduce& all_reduce);
  Measurements take();

  bool begun = false;  ///< a call has added gradients or curvature
  /// Parameters or states have changed since it had begun. What was measured is gone while gradients stay, so nothing
  /// is measured until they end as well.
  bool spoiled = false;
  bool measured = false;     ///< a call measured
  bool by_backward = false;  ///< it was `backward`
  bool is_explicit = false;  ///< curvature comes from `update_curvature`

 private:
  struct Sum {
    at::Tensor estimate, second_product, gradient;
    double reached = 0, with_graph = 0;  ///< calls; over ranks, their mean
    double lost = 0;                     ///< calls whose product cannot be had; likewise
    std::string why;                     ///< what the operator said that has no second derivative
    std::array<double, 4> types{};       ///< calls with gradients as coarse as each of `kTypes`; likewise
  };
  Sum product_of(size_t i, const at::Tensor& gradient, bool retain_graph) const;
  std::vector<Sum> joint_product(const std::vector<bool>& asked, const GraphGradients& found, bool retain_graph) const;
  /// A product; if an operator has no second derivative, what it says instead.
  Sum product_or_reason(size_t i, const at::Tensor& gradient, bool retain_graph) const;
  std::vector<Sum> products_of(const GraphGradients& found, bool retain_graph) const;

  bool open_ = false;
  bool joint_ = false;
  std::vector<DueParameter> due_;
  std::vector<Probes> probes_;
  std::vector<Sum> sums_;
  at::Tensor gradient_scale_;
  int64_t products_ = 0;
};

}  // namespace sgdph
