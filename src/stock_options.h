#pragma once

#include <sgdph/detail/fields.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

namespace sgdph {

/// Options of an optimizer of LibTorch's as a list of fields like ours, so that it stands in the catalogue.
template <class Options>
class StockOptions final : public detail::CheckedOptions {
 public:
  StockOptions();
  void visit(detail::FieldVisitor& visitor) override;
  const Options& plain() const { return options_; }

 protected:
  void check_more(const std::string& where) const override;

 private:
  Options options_;
};

using StockSGDOptions = StockOptions<torch::optim::SGDOptions>;
using StockAdamOptions = StockOptions<torch::optim::AdamOptions>;
using StockAdamWOptions = StockOptions<torch::optim::AdamWOptions>;

}  // namespace sgdph
