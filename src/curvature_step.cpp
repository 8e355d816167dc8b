#include <sgdph/curvature_optimizer.h>

#include <sgdph/detail/finite.h>

#include "curvature_impl.h"

#include <c10/util/StringUtil.h>

#include <algorithm>

// How a step ends the window.

namespace sgdph {
namespace {

constexpr int64_t kStepsToNotice = 20;

}  // namespace

void CurvatureOptimizer::Impl::measure_gradients(const CurvatureOptimizer& self) {
  const auto parameters = self.trainable_parameters();
  const auto carries = [](const at::Tensor& parameter) { return parameter.grad().requires_grad(); };
  if (std::none_of(parameters.begin(), parameters.end(), carries)) return;
  if (!window.measured && !window.is_explicit && !window.spoiled) {
    open_window(self);
    GraphGradients found;
    for (const auto& due : window.due()) found.wanted.push_back(due.parameter.grad());
    found.lost.resize(found.wanted.size());
    if (window.has_second_probe()) {
      for (const auto& parameter : parameters) {
        if (parameter.grad().defined()) found.sizes.push_back(root_mean_square(parameter.grad()));
      }
    }
    window.add(found, Weight(BackwardOptions()), /*retain_graph=*/true);
  }
  for (const auto& parameter : parameters) {
    if (carries(parameter)) parameter.mutable_grad() = parameter.grad().detach();
  }
}

void CurvatureOptimizer::Impl::average_window(const CurvatureOptimizer& self) {
  if (!all_reduce) return;
  open_window(self);  // a rank that measured nothing joins in as well
  const bool as_agreed = window.average([&](at::Tensor& tensor) {
    const auto sizes = tensor.sizes().vec();
    all_reduce(tensor);
    TORCH_CHECK(
        tensor.defined() && tensor.sizes() == sizes, self.name(),
        ": the all-reduce function must keep the tensor's shape ", at::IntArrayRef(sizes));
  });
  TORCH_CHECK(
      as_agreed, self.name(), ": not every parameter was measured by the ranks it belongs to; set_ranks must be given ",
      "0 to ", ranks - 1, " of ", ranks, ", each on one of the ranks that set_all_reduce averages over");
}

Measurements CurvatureOptimizer::close_window() {
  auto& window = impl_->window;
  auto& watch = impl_->watch;
  // Also when gradients were cleared by hand, and a plain pass has brought others.
  if (watch.cleared() || (window.by_backward && watch.others_left() && !watch.ours_left())) window = {};
  TORCH_CHECK(!watch.both_left(), name(), "::step: ", kBothWays);
  impl_->measure_gradients(*this);
  impl_->average_window(*this);
  auto result = window.take();
  result.spoiled = window.spoiled;
  summary_.products = result.products;
  impl_->check_finite(*this, result);
  if (!result.spoiled) impl_->notice_unmeasured(*this, window.is_open() ? window.due() : due(), result.measured);
  discard();
  return result;
}

void CurvatureOptimizer::skip_update() {
  impl_->average_window(*this);
  summary_.products = impl_->window.take().products;
  discard();
}

void CurvatureOptimizer::Impl::check_finite(CurvatureOptimizer& self, Measurements& measurements) {
  std::vector<at::Tensor> values;
  for (const auto& one : measurements.found) {
    values.push_back(one.estimate);
    values.push_back(one.second_product);
  }
  // One look at all of them, as a rule.
  const bool all_finite = detail::count_non_finite(values) == 0;
  for (auto& one : measurements.found) {
    const auto non_finite = all_finite ? 0 : detail::count_non_finite({one.estimate, one.second_product});
    auto& in_a_row = rejected[one.of.parameter.unsafeGetTensorImpl()];
    one.finite = non_finite == 0;
    in_a_row = one.finite ? 0 : in_a_row + 1;
    if (one.finite) continue;
    self.summary_.non_finite += non_finite;
    ++self.summary_.rejected_estimates;
    if (in_a_row == kRejectionsToNotice) {
      TORCH_WARN(
          self.name(), ": the curvature of ", label_of(self, one.of), " was not finite ", kRejectionsToNotice,
          " times in a row and is not used; the loss has no second derivative there");
    }
  }
}

void CurvatureOptimizer::Impl::notice_unmeasured(
    const CurvatureOptimizer& self, const std::vector<DueParameter>& due, bool measured) {
  if (measured) {
    unmeasured_steps = 0;
    return;
  }
  const auto moved = [](const DueParameter& one) { return moves(one.parameter); };
  if (std::none_of(due.begin(), due.end(), moved) || ++unmeasured_steps != kStepsToNotice) return;
  TORCH_WARN(
      self.name(), ": ", kStepsToNotice,
      " steps without a measurement of the curvature that was due; call optimizer.backward(loss) in place of "
      "loss.backward(), or optimizer.update_curvature(loss) after zero_grad() and before the step");
}

void CurvatureOptimizer::notice_not_measurable(const Measurements& measurements) {
  std::vector<std::string> names;
  for (const auto& one : measurements.found) {
    if (one.has_graph || !impl_->not_measurable.insert(one.of.parameter.unsafeGetTensorImpl()).second) continue;
    names.push_back(Impl::label_of(*this, one.of));
    if (!one.why.empty()) names.back() += " (" + one.why + ")";
  }
  if (names.empty()) return;
  TORCH_WARN(
      name(), ": not measurable: ", c10::Join(", ", names),
      "; no graph leads through the gradient, as behind a backward pass that cannot be differentiated, or of a loss "
      "that is linear; the last curvature serves on, and a parameter that has none does not move");
}

int64_t CurvatureOptimizer::rejected_in_a_row(const at::Tensor& parameter) const {
  const auto found = impl_->rejected.find(parameter.unsafeGetTensorImpl());
  return found == impl_->rejected.end() ? 0 : found->second;
}

std::string CurvatureOptimizer::Impl::label_of(const CurvatureOptimizer& self, const DueParameter& due) {
  if (auto name = self.name_of(due.parameter); !name.empty()) return name;
  auto position = due.position;
  size_t group = 0;
  while (position >= self.param_groups_[group].params().size()) position -= self.param_groups_[group++].params().size();
  return "group " + std::to_string(group) + " parameter " + std::to_string(position);
}

}  // namespace sgdph
