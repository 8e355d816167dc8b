#include "core.h"

#include <sgdph/catalogue.h>
#include <sgdph/detail/optimizer_fields.h>
#include <sgdph/sgd_ph.h>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/serialize/archive.h>

#include <pybind11/stl.h>

#include <cstring>
#include <sstream>
#include <unordered_set>

namespace sgdph::python {
namespace {

using torch::optim::OptimizerParamGroup;

std::vector<at::Tensor> parameters_of(const py::dict& group) {
  std::vector<at::Tensor> parameters;
  for (const auto& item : group["params"]) {
    if (!THPVariable_Check(item.ptr())) throw py::type_error("an optimizer's parameters are tensors");
    const auto& parameter = THPVariable_Unpack(item.ptr());
    if (parameter.unsafeGetTensorImpl()->is_python_dispatch() || !parameter.has_storage()) {
      throw py::value_error(
          "parameter " + std::to_string(parameters.size()) + " is a " + Py_TYPE(item.ptr())->tp_name +
          ", which has no memory of its own to work on (DTensor and fully sharded parameters are such): train dense "
          "parameters, with DistributedDataParallel and sgdph.distribute on many processes");
    }
    parameters.push_back(parameter);
  }
  return parameters;
}

bool are_same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].is_same(b[i])) return false;
  }
  return true;
}

detail::CheckedOptions& checked(torch::optim::OptimizerOptions& options) {
  return dynamic_cast<detail::CheckedOptions&>(options);
}

/// Runs `action`; what the library's checks refuse is a bad value of the caller's.
template <class Action>
auto with_value_errors(const Action& action) {
  try {
    return action();
  } catch (const c10::Error& error) {
    throw py::value_error(error.what_without_backtrace());
  }
}

std::unique_ptr<torch::optim::OptimizerOptions> options_from(
    const torch::optim::OptimizerOptions& old, const py::dict& given, const std::string& where) {
  auto options = old.clone();
  read_options(checked(*options), given, where);
  with_value_errors([&] { checked(*options).check(where); });
  return options;
}

/// Runs `action` and hands the library's notices, which begin with `title`, to Python's warnings: without places in C++
/// sources. Others go the way they would.
template <class Action>
void with_notices(const std::string& title, const Action& action) {
  struct Collector final : c10::WarningHandler {
    std::string title;
    c10::WarningHandler* others = nullptr;
    std::vector<std::string> notices;
    void process(const c10::Warning& warning) override {
      if (warning.msg().rfind(title, 0) == 0) {
        notices.push_back(warning.msg());
      } else {
        others->process(warning);
      }
    }
  };
  Collector collector;
  collector.title = title;
  collector.others = c10::WarningUtils::get_warning_handler();
  {
    const c10::WarningUtils::WarningHandlerGuard guard(&collector);
    action();
  }
  if (collector.notices.empty()) return;
  const py::gil_scoped_acquire gil;
  const auto notify = py::module_::import("sgdph._optimizer").attr("_notify");
  for (const auto& notice : collector.notices) notify(notice);
}

}  // namespace

/// One use at a time: a second thread is told so, before it meets halves of what the first one does. The same thread
/// may read meanwhile, from a hook say.
class Core::Use {
 public:
  explicit Use(const Core& core, bool reads = false) : core_(core) {
    auto nobody = std::thread::id();
    mine_ = core.user_.compare_exchange_strong(nobody, std::this_thread::get_id());
    TORCH_CHECK(
        mine_ || (reads && nobody == std::this_thread::get_id()), core.title_,
        nobody == std::this_thread::get_id()
            ? ": called from a hook of its own backward or step, which has to end first"
            : ": used by two threads at once; give each thread an optimizer of its own, or take turns by a lock");
  }
  ~Use() {
    if (mine_) core_.user_ = std::thread::id();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  const Core& core_;
  bool mine_;
};

Core::Core(const std::string& name, const py::list& groups) {
  const auto& info = optimizer_info(name);
  title_ = info.class_name.substr(info.class_name.rfind(':') + 1);
  std::vector<ParameterGroup> given;
  for (const auto& item : groups) {
    const auto group = py::reinterpret_borrow<py::dict>(item);
    given.push_back({parameters_of(group), read_values(info, group, where(given.size()))});
  }
  optimizer_ = make_optimizer(name, given, given.at(0).values);
  base_ = dynamic_cast<OptimizerBase*>(optimizer_.get());
  curvature_ = dynamic_cast<CurvatureOptimizer*>(optimizer_.get());
  TORCH_CHECK(base_ != nullptr, name, " is an optimizer of LibTorch's own; use the one in torch.optim");
}

void Core::sync(const py::list& groups) {
  const Use use(*this);
  auto& ours = base_->param_groups();
  if (groups.size() != ours.size()) {
    throw py::value_error(
        title_ + ": param_groups has " + std::to_string(groups.size()) + " groups, the optimizer has " +
        std::to_string(ours.size()) + "; add groups by add_param_group");
  }
  std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> options;
  std::vector<std::vector<at::Tensor>> parameters;
  for (size_t i = 0; i < ours.size(); ++i) {
    const auto group = py::reinterpret_borrow<py::dict>(groups[i]);
    options.push_back(options_from(ours[i].options(), group, where(i)));
    parameters.push_back(parameters_of(group));
  }
  if (options.empty()) return;
  // What is optimizer-wide goes by the first group, with which the others have to agree.
  read_options(checked(base_->defaults()), py::reinterpret_borrow<py::dict>(groups[0]), title_);
  for (size_t i = 0; i < ours.size(); ++i) {
    if (!are_same(ours[i].params(), parameters[i])) ours[i].params() = std::move(parameters[i]);
    ours[i].set_options(std::move(options[i]));
  }
  with_value_errors([&] { detail::OptimizerFields(*base_).check(); });
}

void Core::add_group(const py::dict& group) {
  const Use use(*this);
  auto options = options_from(base_->defaults(), group, where(base_->param_groups().size()));
  with_value_errors([&] { base_->add_param_group({parameters_of(group), std::move(options)}); });
}

py::list Core::options() const {
  const Use use(*this, /*reads=*/true);
  py::list found;
  for (auto& group : base_->param_groups()) found.append(to_option_dict(checked(group.options())));
  return found;
}

CurvatureOptimizer& Core::curvature() const {
  TORCH_CHECK(curvature_ != nullptr, title_, " measures no curvature");
  return *curvature_;
}

void Core::backward(const at::Tensor& loss, const BackwardOptions& options) {
  const Use use(*this);
  if (options.measure() && curvature().curvature_due()) check_graph(loss, title_ + ".backward");
  with_notices(title_, [&] { curvature().backward(loss, options); });
}

void Core::update_curvature(const at::Tensor& loss, const BackwardOptions& options) {
  const Use use(*this);
  if (curvature().curvature_due()) check_graph(loss, title_ + ".update_curvature");
  with_notices(title_, [&] { curvature().update_curvature(loss, options); });
}

void Core::step() {
  const Use use(*this);
  with_notices(title_, [&] { base_->step(); });
}

void Core::discard() {
  const Use use(*this);
  if (curvature_ != nullptr) curvature_->discard();
}

bool Core::curvature_due() {
  const Use use(*this, /*reads=*/true);
  return curvature_ != nullptr && curvature_->curvature_due();
}

void Core::set_all_reduce(std::function<void(at::Tensor)> average) {
  const Use use(*this);
  if (curvature_ == nullptr) return;
  if (average) {
    curvature_->set_all_reduce([average = std::move(average)](at::Tensor& tensor) { average(tensor); });
  } else {
    curvature_->set_all_reduce(nullptr);
  }
}

void Core::set_ranks(int64_t rank, int64_t ranks) {
  const Use use(*this);
  if (curvature_ != nullptr) curvature_->set_ranks(rank, ranks);
}

void Core::set_probe_source(std::function<at::Tensor(at::Tensor)> source) {
  const Use use(*this);
  curvature().set_probe_source(std::move(source));
}

void Core::set_curvature_filter(std::function<at::Tensor(at::Tensor)> filter) {
  const Use use(*this);
  auto* const sgdph = dynamic_cast<SGDPH*>(base_);
  TORCH_CHECK(sgdph != nullptr, title_, " has no curvature that could be filtered");
  sgdph->set_curvature_filter(std::move(filter));
}

py::dict Core::last_step() const {
  const Use use(*this, /*reads=*/true);
  const auto& summary = base_->last_step();
  py::list blocks;
  for (const auto& block : summary.blocks_refreshed) {
    blocks.append(py::make_tuple(block.name, block.parameter, block.estimate));
  }
  py::dict found;
  found["step"] = summary.step;
  found["applied"] = summary.applied;
  found["blocks_refreshed"] = blocks;
  found["products"] = summary.products;
  found["non_finite"] = summary.non_finite;
  found["rejected_estimates"] = summary.rejected_estimates;
  return found;
}

py::list Core::partition() const {
  const Use use(*this, /*reads=*/true);
  py::list found;
  if (const auto* sgdph = dynamic_cast<const SGDPH*>(base_)) {
    for (const auto& entry : sgdph->partition().entries) {
      found.append(py::make_tuple(entry.name, entry.parameter, entry.group, entry.second_order, entry.reason));
    }
  }
  return found;
}

py::list Core::states() const {
  const Use use(*this, /*reads=*/true);
  const detail::OptimizerFields fields(*base_);
  py::list found;
  for (const auto& group : base_->param_groups()) {
    for (const auto& parameter : group.params()) {
      if (auto* state = fields.state(parameter)) found.append(py::make_tuple(parameter, to_dict(*state)));
    }
  }
  return found;
}

py::object Core::progress() const {
  const Use use(*this, /*reads=*/true);
  const auto progress = detail::OptimizerFields(*base_).progress();
  return progress ? py::object(to_dict(*progress)) : py::none();
}

void Core::restore(const py::list& states, const py::object& progress) {
  const Use use(*this);
  const detail::OptimizerFields fields(*base_);
  detail::OptimizerFields::States made;
  for (const auto& item : states) {
    const auto pair = py::reinterpret_borrow<py::tuple>(item);
    auto state = fields.make_state();
    read_fields(dynamic_cast<detail::Fields&>(*state), pair[1], title_ + ", a parameter's state");
    made.emplace_back(py::cast<at::Tensor>(pair[0]), std::move(state));
  }
  auto shared = fields.progress();
  const bool given = shared && !progress.is_none();
  if (given) read_fields(*shared, progress, title_ + ", progress");
  with_value_errors([&] { fields.restore(std::move(made), given ? shared.get() : nullptr); });
}

py::bytes Core::save() const {
  const Use use(*this, /*reads=*/true);
  torch::serialize::OutputArchive archive;
  base_->save(archive);
  std::ostringstream stream;
  archive.save_to(stream);
  return py::bytes(stream.str());
}

void Core::load(const std::string& bytes) {
  const Use use(*this);
  with_value_errors([&] {
    torch::serialize::InputArchive archive;
    archive.load_from(bytes.data(), bytes.size());
    base_->load(archive);
  });
}

py::tuple Core::load_matching(const std::string& bytes) {
  const Use use(*this);
  return with_value_errors([&] {
    torch::serialize::InputArchive archive;
    archive.load_from(bytes.data(), bytes.size());
    const auto report = base_->load_matching(archive);
    return py::make_tuple(report.taken, report.skipped);
  });
}

void check_graph(const at::Tensor& loss, const std::string& who) {
  if (!loss.defined()) return;
  std::vector<torch::autograd::Node*> open{loss.grad_fn().get()};
  std::unordered_set<torch::autograd::Node*> seen;
  while (!open.empty()) {
    auto* const node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    for (const auto& edge : node->next_edges()) open.push_back(edge.function.get());
    // Names are dear, and those of interest are of functions written in Python.
    if (std::strstr(typeid(*node).name(), "PyNode") == nullptr) continue;
    const auto name = node->name();
    TORCH_CHECK(
        name != "CheckpointFunctionBackward", who,
        ": a reentrant checkpoint is on the way, which has no second derivative; use "
        "torch.utils.checkpoint.checkpoint(..., use_reentrant=False)");
    TORCH_CHECK(
        name != "CompiledFunctionBackward", who,
        ": a compiled module is on the way, which has no second derivative; use sgdph.backward_compiled, or "
        "update_curvature with a loss of the uncompiled module and then loss.backward()");
  }
}

}  // namespace sgdph::python
