#include "core.h"

#include <sgdph/fast_operators.h>
#include <sgdph/hessian.h>
#include <sgdph/version.h>

#include <torch/csrc/Exceptions.h>
#include <torch/version.h>

#include <pybind11/functional.h>
#include <pybind11/stl.h>

namespace sgdph::python {
namespace {

py::dict describe(const OptionInfo& option) {
  py::dict found;
  found["name"] = option.name;
  found["help"] = option.help;
  found["default"] = to_python(option);
  const char* const kinds[] = {"bool", "int", "float", "str", "tuple"};
  found["type"] = kinds[option.value.index()];
  if (const auto* numbers = std::get_if<std::vector<double>>(&option.value)) found["count"] = numbers->size();
  found["optional"] = option.unset;
  found["shared"] = option.shared;
  found["choices"] = option.choices;
  const bool number = option.value.index() == 1 || option.value.index() == 2 || option.value.index() == 4;
  found["bound"] = number ? option.bound.text(option.value.index() == 1) : "";
  return found;
}

/// Our own optimizers; those of LibTorch are torch.optim's.
py::list catalogue() {
  py::list found;
  for (const auto& info : optimizers()) {
    if (info.class_name.rfind("sgdph::", 0) != 0) continue;
    py::list options;
    for (const auto& option : info.options) options.append(describe(option));
    py::dict one;
    one["name"] = info.name;
    one["label"] = info.label;
    one["class_name"] = info.class_name.substr(7);
    one["title"] = info.title;
    one["source"] = info.source;
    one["measures_curvature"] = info.traits.measures_curvature;
    one["has_blocks"] = info.traits.has_blocks;
    one["options"] = options;
    found.append(one);
  }
  return found;
}

BackwardOptions backward_options(
    bool retain_graph, double scale, const std::optional<at::Tensor>& scale_tensor, bool measure, double represents,
    std::vector<at::Tensor> inputs) {
  return BackwardOptions()
      .retain_graph(retain_graph)
      .scale(scale)
      .scale_tensor(scale_tensor.value_or(at::Tensor()))
      .measure(measure)
      .represents(represents)
      .inputs(std::move(inputs));
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C++ core of sgdph. Use the package, not this.";
  module.attr("torch_version") = TORCH_VERSION;
  module.def("catalogue", &catalogue);
  module.def("resolve_options", [](const std::string& name, const py::dict& given, const std::string& where) {
    py::dict found;
    for (const auto& [key, value] : resolve_options(name, read_values(optimizer_info(name), given, where))) {
      found[key.c_str()] = py::cast(value);
    }
    return found;
  });
  module.def("install_fast_operators", torch::wrap_pybind_function(install_fast_operators));
  module.def("remove_fast_operators", torch::wrap_pybind_function(remove_fast_operators));
  module.def("fast_operators_installed", torch::wrap_pybind_function(fast_operators_installed));
  module.def(
      "hessian_vector_product",
      torch::wrap_pybind_function_no_gil(
          [](const std::vector<at::Tensor>& gradients, const std::vector<at::Tensor>& parameters,
             const std::vector<at::Tensor>& probes,
             bool retain_graph) { return hessian_vector_product(gradients, parameters, probes, retain_graph); }),
      py::arg("gradients"), py::arg("parameters"), py::arg("probes"), py::arg("retain_graph") = false);

  const auto backward = [](Core& core, const at::Tensor& loss, bool retain_graph, double scale,
                           const std::optional<at::Tensor>& scale_tensor, bool measure, double represents,
                           std::vector<at::Tensor> inputs) {
    core.backward(loss, backward_options(retain_graph, scale, scale_tensor, measure, represents, std::move(inputs)));
  };
  const auto update_curvature = [](Core& core, const at::Tensor& loss, double scale,
                                   const std::optional<at::Tensor>& scale_tensor, double represents,
                                   std::vector<at::Tensor> inputs) {
    core.update_curvature(loss, backward_options(true, scale, scale_tensor, true, represents, std::move(inputs)));
  };
  py::class_<Core>(module, "Core")
      .def(py::init<const std::string&, const py::list&>(), py::arg("name"), py::arg("groups"))
      .def("sync", torch::wrap_pybind_function(&Core::sync), py::arg("groups"))
      .def("add_group", torch::wrap_pybind_function(&Core::add_group), py::arg("group"))
      .def("options", torch::wrap_pybind_function(&Core::options))
      .def(
          "backward", torch::wrap_pybind_function_no_gil(backward), py::arg("loss"), py::arg("retain_graph"),
          py::arg("scale"), py::arg("scale_tensor"), py::arg("measure"), py::arg("represents"), py::arg("inputs"))
      .def(
          "update_curvature", torch::wrap_pybind_function_no_gil(update_curvature), py::arg("loss"), py::arg("scale"),
          py::arg("scale_tensor"), py::arg("represents"), py::arg("inputs"))
      .def("step", torch::wrap_pybind_function_no_gil(&Core::step))
      .def("discard", torch::wrap_pybind_function(&Core::discard))
      .def("curvature_due", torch::wrap_pybind_function(&Core::curvature_due))
      .def("set_all_reduce", torch::wrap_pybind_function(&Core::set_all_reduce), py::arg("average"))
      .def("set_ranks", torch::wrap_pybind_function(&Core::set_ranks), py::arg("rank"), py::arg("ranks"))
      .def("set_probe_source", torch::wrap_pybind_function(&Core::set_probe_source), py::arg("source"))
      .def("set_curvature_filter", torch::wrap_pybind_function(&Core::set_curvature_filter), py::arg("filter"))
      .def("last_step", torch::wrap_pybind_function(&Core::last_step))
      .def("partition", torch::wrap_pybind_function(&Core::partition))
      .def("states", torch::wrap_pybind_function(&Core::states))
      .def("progress", torch::wrap_pybind_function(&Core::progress))
      .def("restore", torch::wrap_pybind_function(&Core::restore), py::arg("states"), py::arg("progress"))
      .def("save", torch::wrap_pybind_function(&Core::save))
      .def("load", torch::wrap_pybind_function(&Core::load), py::arg("archive"))
      .def("load_matching", torch::wrap_pybind_function(&Core::load_matching), py::arg("archive"));
}

}  // namespace sgdph::python
