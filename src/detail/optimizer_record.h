#pragma once

#include <c10/core/UndefinedTensorImpl.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace sgdph::detail {

/// What an optimizer was at its last check, so that a step notices a change of options or parameters without building
/// or printing anything. Parameters are known by weak references: while one is known, no other has its address.
class OptimizerRecord {
 public:
  using Groups = std::vector<torch::optim::OptimizerParamGroup>;
  using States = std::decay_t<decltype(std::declval<torch::optim::Optimizer&>().state())>;
  using StateKey = States::key_type;

  /// Whether all options have the values, and are of the types, that were kept last.
  bool has_options(const torch::optim::OptimizerOptions& defaults, const Groups& groups);
  /// Keeps the options that `has_options` looked at last.
  void keep_options() { options_.swap(seen_options_); }

  /// Whether the groups hold the parameters that were kept last, of the types and shapes and on the devices they had.
  bool has_parameters(const Groups& groups) const;
  /// A parameter whose type, device or shape is not what it was.
  struct Changed {
    at::Tensor parameter;
    bool reshaped = false;
  };
  /// Keeps them, and returns those known before that have changed.
  std::vector<Changed> keep_parameters(const Groups& groups, const States& states);
  /// Drops the states of parameters that had left when they were kept last, and are dead. One that somebody holds may
  /// come back and keeps its state.
  void drop_dead(States& states);

  /// The parameter's key in the optimizer's states; null if it is not known.
  const StateKey* key_of(const at::Tensor& parameter) const;

 private:
  using WeakTensor = c10::weak_intrusive_ptr<at::TensorImpl, c10::UndefinedTensorImpl>;
  /// What the states' tensors go by.
  struct Look {
    explicit Look(const at::Tensor& tensor)
        : type(tensor.scalar_type()), device(tensor.device()), sizes(tensor.sizes().vec()) {}
    bool is_of(const at::Tensor& tensor) const {
      return type == tensor.scalar_type() && device == tensor.device() && tensor.sizes() == sizes;
    }
    at::ScalarType type;
    at::Device device;
    std::vector<int64_t> sizes;
  };
  struct Known {
    const at::TensorImpl* address;
    WeakTensor tensor;
    StateKey key;
    Look look;
  };

  std::vector<uint64_t> options_;
  std::vector<uint64_t> seen_options_;
  std::vector<const Known*> order_;  ///< of the parameters; null after each group
  size_t present_ = 0;               ///< parameters that have not left
  std::unordered_map<const at::TensorImpl*, Known> known_;
};

}  // namespace sgdph::detail
