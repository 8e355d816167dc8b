#pragma once

// What versions of LibTorch (1.13 to 2.14) differ in and the library meets, but for hooks (hooks.h). Properties are
// asked for, not version numbers: distributions and nightly builds have their own.

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/enum.h>
#include <torch/optim/optimizer.h>

#include <cstring>
#include <exception>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <variant>

namespace sgdph::detail {

// Options of layers hold a variant of LibTorch's own (1.x) or the standard one. Asked of what <torch/enum.h> included,
// since a header that merely exists may be that of another LibTorch on the machine.
#ifdef C10_UTIL_VARIANT_H_
using c10::get_if;
#else
using std::get_if;
#endif

/// What owns a node of the graph: `std::shared_ptr`, from 2.13 on `c10::intrusive_ptr`.
using NodePtr = decltype(torch::autograd::Edge::function);

/// Owns a node just made with `new`.
template <class Kind>
auto own_node(Kind* node) {
  if constexpr (std::is_same_v<NodePtr, std::shared_ptr<torch::autograd::Node>>) {
    // Found in torch::autograd through its argument, so that nothing is missing where it does not exist.
    return std::shared_ptr<Kind>(node, [](auto* done) { deleteNode(done); });
  } else {
    return c10::intrusive_ptr<Kind>::unsafe_steal_from_new(node);
  }
}

/// Whether a node is that of one of LibTorch's operators, whose derivative it knows or refuses; others run somebody's
/// code. Views are no TraceableFunction, so the namespace of the generated nodes is asked for as well.
inline bool is_operator(const torch::autograd::Node& node) {
  return dynamic_cast<const torch::autograd::TraceableFunction*>(&node) != nullptr ||
         std::strstr(typeid(node).name(), "generated") != nullptr;
}

/// If the error is that an operator has no second derivative, what it says, in a line; else nothing. As a rule the
/// exception has no type of its own: those that LibTorch's graphs and derivatives throw, and Python's functions that
/// may be differentiated once, are known by their words.
inline std::string missing_derivative(const std::exception& error) {
  const auto* own = dynamic_cast<const c10::Error*>(&error);
  std::string message = own != nullptr ? own->what_without_backtrace() : error.what();
  message = message.substr(0, message.find('\n'));
  const auto says = [&message](const char* text) { return message.find(text) != std::string::npos; };
  const bool missing = dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr ||
                       (says("derivative") && says("not implemented")) || says("differentiate twice");
  return missing ? message : "";
}

/// The key of a parameter in `torch::optim::Optimizer::state()`: the printed address in 1.x, the address itself in 2.x.
template <class Map>
typename Map::key_type state_key(const Map&, const at::Tensor& parameter) {
  if constexpr (std::is_same_v<typename Map::key_type, std::string>) {
    std::ostringstream text;
    text << parameter.unsafeGetTensorImpl();
    return text.str();
  } else {
    return parameter.unsafeGetTensorImpl();
  }
}

/// Gives an added group the options it came with. From 2.10 on `torch::optim::Optimizer::add_param_group` starts from
/// the optimizer's defaults: it drops options of classes it does not know, and of its own those values that are what
/// the class has by default.
inline void keep_options(torch::optim::OptimizerParamGroup& added, const torch::optim::OptimizerParamGroup& given) {
  if (given.has_options()) added.set_options(given.options().clone());
}

}  // namespace sgdph::detail
