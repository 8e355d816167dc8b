#pragma once

#include <torch/csrc/utils/pybind.h>

#include <sgdph/detail/fields.h>
#include <sgdph/schema.h>

#include <string>

// Options, states and progress between C++ and dictionaries of Python.

namespace sgdph::python {

namespace py = pybind11;

/// An option's default as Python writes it; None where it is unset.
py::object to_python(const OptionInfo& option);

/// The options that the dictionary names, None being unset, others at their defaults; keys that are no options are the
/// user's own. A ValueError opens with `where`.
OptionValues read_values(const OptimizerInfo& info, const py::dict& given, const std::string& where);
/// The same into an object that has been there before.
void read_options(detail::Fields& options, const py::dict& given, const std::string& where);

/// All fields but tensors that are undefined. Tensors are shared, enumerators are numbers.
py::dict to_dict(detail::Fields& fields);
/// The same for options: enumerators are words, and what is unset is None.
py::dict to_option_dict(detail::Fields& options);

/// Fields that the dictionary lacks stay as they are. Tensors are copied.
void read_fields(detail::Fields& fields, const py::dict& given, const std::string& where);

}  // namespace sgdph::python
