#pragma once

#include "values.h"

#include <sgdph/curvature_optimizer.h>
#include <sgdph/optimizer.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sgdph::python {

/// An optimizer of the catalogue as the classes of Python hold it. Their `param_groups` are the truth: `sync` brings
/// them here before anything is done with them.
class Core {
 public:
  Core(const std::string& name, const py::list& groups);

  /// Takes over parameters and options of the groups. A ValueError says what is wrong, and nothing has changed then.
  void sync(const py::list& groups);
  void add_group(const py::dict& group);
  /// The options as they are here, a dictionary for each group.
  py::list options() const;

  // Without the GIL.
  void backward(const at::Tensor& loss, const BackwardOptions& options);
  void update_curvature(const at::Tensor& loss, const BackwardOptions& options);
  void step();

  void discard();
  bool curvature_due();
  void set_all_reduce(std::function<void(at::Tensor)> average);
  void set_ranks(int64_t rank, int64_t ranks);
  void set_probe_source(std::function<at::Tensor(at::Tensor)> source);
  void set_curvature_filter(std::function<at::Tensor(at::Tensor)> filter);

  py::dict last_step() const;
  /// Name, parameter, group, second_order, reason of each.
  py::list partition() const;

  /// What is kept for each parameter that has something, and for all together (None: nothing).
  py::list states() const;
  py::object progress() const;
  /// Replaces both: pairs of parameter and fields, and progress unless it is None.
  void restore(const py::list& states, const py::object& progress);

  /// The archive of the C++ class.
  py::bytes save() const;
  void load(const std::string& bytes);
  py::tuple load_matching(const std::string& bytes);

 private:
  class Use;
  CurvatureOptimizer& curvature() const;
  std::string where(size_t group) const { return title_ + ", group " + std::to_string(group); }

  std::string title_;  ///< the class's name
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  OptimizerBase* base_;
  CurvatureOptimizer* curvature_;
  mutable std::atomic<std::thread::id> user_{};
};

/// Refuses a loss whose graph has nodes of Python that no second derivative goes through: reentrant checkpoints, and
/// what torch.compile made.
void check_graph(const at::Tensor& loss, const std::string& who);

}  // namespace sgdph::python
