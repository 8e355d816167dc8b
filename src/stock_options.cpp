#include "stock_options.h"

namespace sgdph {
namespace {

template <class Options>
void visit_adam(Options& options, detail::FieldVisitor& visitor, const char* decay) {
  visitor("lr", options.lr(), {"learning rate", at_least(0)});
  visitor("betas", options.betas(), {"decay of the averages of gradient and squared gradient", fraction()});
  visitor("eps", options.eps(), {"added to the divisor", at_least(0)});
  visitor("weight_decay", options.weight_decay(), {decay, at_least(0)});
  visitor("amsgrad", options.amsgrad(), {"divide by the largest second moment so far"});
}

}  // namespace

// LibTorch gives SGD no learning rate, and no momentum, by default.
template <>
StockSGDOptions::StockOptions() : options_(0.1) {
  options_.momentum(0.9);
}
template <>
StockAdamOptions::StockOptions() = default;
template <>
StockAdamWOptions::StockOptions() = default;

template <>
void StockSGDOptions::visit(detail::FieldVisitor& visitor) {
  visitor("lr", options_.lr(), {"learning rate", at_least(0)});
  visitor("momentum", options_.momentum(), {"momentum; weighs the old value", fraction()});
  visitor("dampening", options_.dampening(), {"takes so much from the gradient's weight in the momentum", at_least(0)});
  visitor("weight_decay", options_.weight_decay(), {"added to the gradient, times the parameter", at_least(0)});
  visitor("nesterov", options_.nesterov(), {"Nesterov's momentum"});
}
template <>
void StockAdamOptions::visit(detail::FieldVisitor& visitor) {
  visit_adam(options_, visitor, "added to the gradient, times the parameter");
}
template <>
void StockAdamWOptions::visit(detail::FieldVisitor& visitor) {
  visit_adam(options_, visitor, "decoupled, multiplied by lr");
}

template <>
void StockSGDOptions::check_more(const std::string& where) const {
  TORCH_CHECK(
      !options_.nesterov() || (options_.momentum() > 0 && options_.dampening() == 0), where,
      ": nesterov needs a momentum greater than 0 and a dampening of 0, got ", options_.momentum(), " and ",
      options_.dampening());
}
template <>
void StockAdamOptions::check_more(const std::string&) const {}
template <>
void StockAdamWOptions::check_more(const std::string&) const {}

template class StockOptions<torch::optim::SGDOptions>;
template class StockOptions<torch::optim::AdamOptions>;
template class StockOptions<torch::optim::AdamWOptions>;

}  // namespace sgdph
