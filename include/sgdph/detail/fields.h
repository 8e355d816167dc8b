#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace sgdph::detail {

/// Visits the named fields of an object. Options and states list their fields once, in `visit`; saving, loading and
/// checking are visitors.
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;

  virtual void operator()(const char* name, bool& value) = 0;
  virtual void operator()(const char* name, int64_t& value) = 0;
  virtual void operator()(const char* name, double& value) = 0;
  virtual void operator()(const char* name, std::string& value) = 0;
  virtual void operator()(const char* name, at::Tensor& value) = 0;
  virtual void operator()(const char* name, std::vector<int64_t>& value) = 0;
  virtual void operator()(const char* name, std::vector<double>& value) = 0;

  void operator()(const char* name, uint64_t& value) {
    auto bits = static_cast<int64_t>(value);
    (*this)(name, bits);
    value = static_cast<uint64_t>(bits);
  }

  void operator()(const char* name, std::tuple<double, double>& value) {
    std::vector<double> pair{std::get<0>(value), std::get<1>(value)};
    (*this)(name, pair);
    TORCH_CHECK(pair.size() == 2, "sgdph: field '", name, "' of the archive has ", pair.size(), " values, not 2");
    value = {pair[0], pair[1]};
  }

  template <class Enum, class = std::enable_if_t<std::is_enum_v<Enum>>>
  void operator()(const char* name, Enum& value) {
    auto number = static_cast<int64_t>(value);
    (*this)(name, number);
    value = static_cast<Enum>(number);
  }

  /// An absent value is a flag of its own, so that every visitor sees it.
  template <class T>
  void operator()(const char* name, std::optional<T>& value) {
    bool present = value.has_value();
    (*this)((std::string(name) + "_set").c_str(), present);
    T content = value.value_or(T{});
    (*this)(name, content);
    value = present ? std::optional<T>(content) : std::nullopt;
  }
};

/// An object made of named fields.
class Fields {
 public:
  virtual ~Fields() = default;
  virtual void visit(FieldVisitor& visitor) = 0;
  void save(torch::serialize::OutputArchive& archive) const;
  void load(torch::serialize::InputArchive& archive);
};

/// What all our option classes have beyond LibTorch's: a field list and a check of every value.
class CheckedOptions : public Fields {
 public:
  /// Throws with option, value and bound if one is out of range; `where` says whose options these are.
  virtual void check(const std::string& where) const = 0;
};

/// Base of an option class: archive and learning rate access follow from the field list.
template <class Derived>
class OptionsBase : public torch::optim::OptimizerCloneableOptions<Derived>, public CheckedOptions {
 public:
  void serialize(torch::serialize::InputArchive& archive) override { load(archive); }
  void serialize(torch::serialize::OutputArchive& archive) const override { save(archive); }
  double get_lr() const override { return static_cast<const Derived&>(*this).lr(); }
  void set_lr(const double lr) override { static_cast<Derived&>(*this).lr(lr); }
};

/// Base of a parameter's state. Every tensor in it has the shape of the parameter.
template <class Derived>
class StateBase : public torch::optim::OptimizerCloneableParamState<Derived>, public Fields {
 public:
  void serialize(torch::serialize::InputArchive& archive) override { load(archive); }
  void serialize(torch::serialize::OutputArchive& archive) const override { save(archive); }
};

}  // namespace sgdph::detail
