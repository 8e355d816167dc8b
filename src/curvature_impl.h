#pragma once

#include <sgdph/curvature_optimizer.h>

#include "autograd.h"
#include "gradient_watch.h"
#include "window.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace sgdph {

constexpr const char* kBothWays =
    "loss.backward(), or another optimizer's backward, has added gradients for this step as well; run each loss's "
    "backward once, by optimizer.backward(loss), and pass BackwardOptions().measure(false) for a loss whose curvature "
    "is not to count, or inputs(...) to the other one";

/// So many estimates in a row that are not finite give a notice.
constexpr int64_t kRejectionsToNotice = 3;

/// What belongs to the step under way, and is never saved, and the user's functions.
struct SGDPH_LOCAL CurvatureOptimizer::Impl {
  Window window;
  GradientWatch watch;  ///< tells when the gradients have been cleared, and with them the window
  std::unordered_map<const at::TensorImpl*, int64_t> rejected;  ///< estimates in a row
  std::unordered_set<const at::TensorImpl*> not_measurable;     ///< of which it has been said
  int64_t unmeasured_steps = 0;                                 ///< in a row, with something due
  ProbeSource probe_source;
  AllReduce all_reduce;
  int64_t rank = 0, ranks = 1;

  /// Refuses what no call can work with, and ends a window whose gradients have been cleared.
  void begin_call(
      CurvatureOptimizer& self, const std::string& who, const at::Tensor& loss, const BackwardOptions& options);
  static bool has_gradients(const CurvatureOptimizer& self);
  void open_window(const CurvatureOptimizer& self);
  void backward_and_measure(
      const at::Tensor& loss, const BackwardOptions& options, const GraphRequest& request,
      const std::vector<bool>& selected);

  /// Measures from gradients that carry a graph, unless that has been done otherwise, and takes the graph off them: it
  /// would keep itself alive through its leaves.
  void measure_gradients(const CurvatureOptimizer& self);
  void average_window(const CurvatureOptimizer& self);
  void check_finite(CurvatureOptimizer& self, Measurements& measurements);
  /// Says once that curvature that is due is never measured.
  void notice_unmeasured(const CurvatureOptimizer& self, const std::vector<DueParameter>& due, bool measured);
  /// How notices call a parameter.
  static std::string label_of(const CurvatureOptimizer& self, const DueParameter& due);
};

}  // namespace sgdph
