#include "values.h"

#include <torch/csrc/autograd/python_variable.h>

#include <pybind11/stl.h>

#include <algorithm>
#include <cctype>

namespace sgdph::python {
namespace {

std::string lower(std::string text) {
  for (auto& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

/// A value given for a field, and how to complain about it.
class Given {
 public:
  Given(py::handle value, const std::string& where, const std::string& name)
      : value_(value), where_(where), name_(name) {}

  bool flag() const {
    // numpy's as well, but no numbers.
    if (py::isinstance<py::bool_>(value_) || std::string(Py_TYPE(value_.ptr())->tp_name).rfind("numpy.bool", 0) == 0) {
      return PyObject_IsTrue(value_.ptr()) == 1;
    }
    refuse("True or False");
  }
  int64_t whole() const {
    if (!py::isinstance<py::bool_>(value_) && PyIndex_Check(value_.ptr()) != 0) {
      const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value_.ptr()));
      int overflow = 0;
      const auto number = index ? PyLong_AsLongLongAndOverflow(index.ptr(), &overflow) : 0;
      if (index && overflow == 0 && PyErr_Occurred() == nullptr) return number;
      PyErr_Clear();
    }
    refuse("a whole number");
  }
  double number() const { return number_in(value_, "a number"); }
  std::string word() const {
    if (!py::isinstance<py::str>(value_)) refuse("a word");
    return py::cast<std::string>(value_);
  }
  std::vector<double> numbers() const {
    if (!py::isinstance<py::sequence>(value_) || py::isinstance<py::str>(value_)) refuse("numbers");
    std::vector<double> found;
    for (const auto& item : py::reinterpret_borrow<py::sequence>(value_)) found.push_back(number_in(item, "numbers"));
    return found;
  }
  std::vector<double> numbers(size_t count) const {
    auto found = numbers();
    if (found.size() != count) refuse((std::to_string(count) + " numbers").c_str());
    return found;
  }
  at::Tensor tensor() const {
    if (!THPVariable_Check(value_.ptr())) refuse("a tensor");
    return THPVariable_Unpack(value_.ptr());
  }

  [[noreturn]] void refuse(const char* kind) const {
    throw py::value_error(
        where_ + ": " + name_ + " takes " + kind + ", got " + py::cast<std::string>(py::repr(value_)));
  }

 private:
  /// Anything that calls itself a number, tensors of one element among it.
  double number_in(py::handle value, const char* kind) const {
    const bool number = !py::isinstance<py::bool_>(value) &&
                        (PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr()) || PyNumber_Check(value.ptr()) != 0) &&
                        !py::isinstance<py::str>(value);
    if (!number) refuse(kind);
    const double found = PyFloat_AsDouble(value.ptr());
    if (found == -1 && PyErr_Occurred() != nullptr) {
      // A tensor of several elements cannot be a number.
      const auto converted = py::reinterpret_steal<py::object>((PyErr_Clear(), PyNumber_Float(value.ptr())));
      if (converted) return PyFloat_AsDouble(converted.ptr());
      PyErr_Clear();
      refuse(kind);
    }
    return found;
  }

  py::handle value_;
  const std::string& where_;
  const std::string name_;
};

/// Sets fields from a dictionary.
class Reader final : public detail::FieldVisitor {
 public:
  /// `unset`: None unsets an optional field, and what the dictionary lacks is unset.
  Reader(const py::dict& given, const std::string& where, bool options)
      : given_(given), where_(where), options_(options) {}

 private:
  template <class Take>
  void with(const char* name, const detail::FieldNote& note, const Take& take) {
    auto* const found = PyDict_GetItemString(given_.ptr(), name);
    if (found == nullptr || (found == Py_None && (!options_ || note.optional))) return;
    take(Given(found, where_, name));
  }
  void presence(const char* name, bool& present) override {
    auto* const found = PyDict_GetItemString(given_.ptr(), name);
    if (options_ || found != nullptr) present = found != nullptr && found != Py_None;
  }
  void field(const char* name, bool& value, const detail::FieldNote& note) override {
    with(name, note, [&](const Given& given) { value = given.flag(); });
  }
  void field(const char* name, int64_t& value, const detail::FieldNote& note) override {
    with(name, note, [&](const Given& given) {
      if (!note.enumerated || !options_) {
        value = given.whole();
        return;
      }
      const auto word = given.word();
      std::string choices;
      for (size_t i = 0; i < note.choices.count; ++i) {
        if (lower(note.choices.first[i]) == lower(word)) {
          value = static_cast<int64_t>(i);
          return;
        }
        choices += (i == 0                        ? "\""
                    : i + 1 == note.choices.count ? " or \""
                                                  : ", \"") +
                   lower(note.choices.first[i]) + '"';
      }
      throw py::value_error(where_ + ": " + name + " must be " + choices + ", got \"" + word + "\"");
    });
  }
  void field(const char* name, double& value, const detail::FieldNote& note) override {
    with(name, note, [&](const Given& given) { value = given.number(); });
  }
  void field(const char* name, std::string& value, const detail::FieldNote& note) override {
    with(name, note, [&](const Given& given) { value = given.word(); });
  }
  void field(const char* name, at::Tensor& value, const detail::FieldNote& note) override {
    with(name, note, [&](const Given& given) { value = given.tensor().detach().clone(); });
  }
  void field(const char* name, std::vector<int64_t>& value, const detail::FieldNote& note) override {
    with(name, note, [&](const Given& given) {
      value.clear();
      for (const double number : given.numbers()) value.push_back(static_cast<int64_t>(number));
    });
  }
  void field(const char* name, std::vector<double>& value, const detail::FieldNote& note) override {
    with(name, note, [&](const Given& given) { value = options_ ? given.numbers(value.size()) : given.numbers(); });
  }
  void field(const char* name, std::vector<std::string>& value, const detail::FieldNote& note) override {
    with(name, note, [&](const Given& given) {
      auto* const list = PyDict_GetItemString(given_.ptr(), name);
      if (!py::isinstance<py::sequence>(list) || py::isinstance<py::str>(list)) given.refuse("words");
      value.clear();
      for (const auto& item : py::reinterpret_borrow<py::sequence>(list)) {
        value.push_back(Given(item, where_, name).word());
      }
    });
  }

  const py::dict& given_;
  const std::string& where_;
  bool options_;
};

/// Puts fields into a dictionary.
class Writer final : public detail::FieldVisitor {
 public:
  explicit Writer(bool options) : options_(options) {}
  py::dict found;

 private:
  template <class Value>
  void put(const char* name, const Value& value, const detail::FieldNote& note) {
    if (note.optional && !note.present) {
      found[name] = py::none();
    } else {
      found[name] = value;
    }
  }
  void field(const char* name, bool& value, const detail::FieldNote& note) override { put(name, value, note); }
  void field(const char* name, int64_t& value, const detail::FieldNote& note) override {
    if (options_ && note.enumerated) {
      put(name, lower(note.choices.first[value]), note);
    } else {
      put(name, value, note);
    }
  }
  void field(const char* name, double& value, const detail::FieldNote& note) override { put(name, value, note); }
  void field(const char* name, std::string& value, const detail::FieldNote& note) override { put(name, value, note); }
  void field(const char* name, at::Tensor& value, const detail::FieldNote& note) override {
    if (value.defined()) put(name, value, note);
  }
  void field(const char* name, std::vector<int64_t>& value, const detail::FieldNote& note) override {
    put(name, value, note);
  }
  void field(const char* name, std::vector<double>& value, const detail::FieldNote& note) override {
    if (options_) {
      put(name, py::object(py::tuple(py::cast(value))), note);
    } else {
      put(name, value, note);
    }
  }
  void field(const char* name, std::vector<std::string>& value, const detail::FieldNote& note) override {
    put(name, value, note);
  }

  bool options_;
};

py::dict written(detail::Fields& fields, bool options) {
  Writer writer(options);
  fields.visit(writer);
  return std::move(writer.found);
}

}  // namespace

py::object to_python(const OptionInfo& option) {
  if (option.unset) return py::none();
  if (const auto* pair = std::get_if<std::vector<double>>(&option.value)) return py::tuple(py::cast(*pair));
  return std::visit([](const auto& value) -> py::object { return py::cast(value); }, option.value);
}

OptionValues read_values(const OptimizerInfo& info, const py::dict& given, const std::string& where) {
  OptionValues values;
  for (const auto& option : info.options) {
    auto* const found = PyDict_GetItemString(given.ptr(), option.name.c_str());
    if (found == nullptr || (found == Py_None && option.unset)) continue;
    const Given value(found, where, option.name);
    values[option.name] = std::visit(
        [&](const auto& sample) -> OptionValue {
          using Kind = std::decay_t<decltype(sample)>;
          if constexpr (std::is_same_v<Kind, bool>) {
            return value.flag();
          } else if constexpr (std::is_same_v<Kind, int64_t>) {
            return value.whole();
          } else if constexpr (std::is_same_v<Kind, double>) {
            return value.number();
          } else if constexpr (std::is_same_v<Kind, std::string>) {
            return value.word();
          } else {
            return value.numbers(sample.size());
          }
        },
        option.value);
  }
  return values;
}

void read_options(detail::Fields& options, const py::dict& given, const std::string& where) {
  Reader reader(given, where, /*options=*/true);
  options.visit(reader);
}

py::dict to_dict(detail::Fields& fields) {
  return written(fields, /*options=*/false);
}

py::dict to_option_dict(detail::Fields& options) {
  return written(options, /*options=*/true);
}

void read_fields(detail::Fields& fields, const py::dict& given, const std::string& where) {
  Reader reader(given, where, /*options=*/false);
  fields.visit(reader);
}

}  // namespace sgdph::python
