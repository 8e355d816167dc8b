#pragma once

#include <sgdph/api.h>
#include <sgdph/schema.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace sgdph::detail {

/// Of the archives written now; earlier ones are read. Version 0.1 wrote 1.
constexpr int64_t kArchiveFormat = 4;

/// Names of a fixed number.
struct Names {
  const char* const* first = nullptr;
  size_t count = 0;

  constexpr Names() = default;
  template <size_t n>
  constexpr Names(const char* const (&names)[n]) : first(names), count(n) {}
  const char* const* begin() const { return first; }
  const char* const* end() const { return first + count; }
};

/// The enumerators of an option's type, by number: specialised with a `kNames` for each.
template <class Enum>
struct EnumNames;

/// What is known of a field beside name and value; see `OptionInfo`.
struct FieldNote {
  const char* help = "";
  Bound bound = {};
  bool shared = false;
  Names choices = {};

  // Filled in by the visitor for fields of a compound type.
  bool enumerated = false;
  bool optional = false;
  bool present = true;  ///< false: an optional that is unset
};
/// Of an option that every group must have alike.
constexpr FieldNote shared(const char* help, Bound bound = {}) {
  return {help, bound, true, {}, false, false, true};
}
template <size_t n>
constexpr FieldNote one_of(const char* help, const char* const (&choices)[n]) {
  return {help, {}, false, choices, false, false, true};
}

/// Visits the named fields of an object. Options and states list their fields once, in `visit`, with all there is to
/// say of an option; archives, checks, documents and the catalogue are visitors.
class SGDPH_API FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;

  /// Of the archive that is read, where the visitor reads one: fields that came later are not to be found there.
  virtual int64_t format() const { return kArchiveFormat; }

  template <class T>
  void operator()(const char* name, T& value, const FieldNote& note = {}) {
    if constexpr (std::is_enum_v<T>) {
      auto number = static_cast<int64_t>(value);
      auto with_names = note;
      with_names.choices = EnumNames<T>::kNames;
      with_names.enumerated = true;
      field(name, number, with_names);
      value = static_cast<T>(number);
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      auto bits = static_cast<int64_t>(value);
      field(name, bits, note);
      value = static_cast<uint64_t>(bits);
    } else {
      field(name, value, note);
    }
  }

  void operator()(const char* name, std::tuple<double, double>& value, const FieldNote& note = {}) {
    std::vector<double> pair{std::get<0>(value), std::get<1>(value)};
    field(name, pair, note);
    TORCH_CHECK(pair.size() == 2, "sgdph: field '", name, "' takes 2 values, got ", pair.size());
    value = {pair[0], pair[1]};
  }

  template <class T>
  void operator()(const char* name, std::optional<T>& value, const FieldNote& note = {}) {
    auto inner = note;
    inner.optional = true;
    inner.present = value.has_value();
    presence(name, inner.present);
    T content = value.value_or(T{});
    (*this)(name, content, inner);
    value = inner.present ? std::optional<T>(content) : std::nullopt;
  }

 protected:
  virtual void field(const char* name, bool& value, const FieldNote& note) = 0;
  virtual void field(const char* name, int64_t& value, const FieldNote& note) = 0;
  virtual void field(const char* name, double& value, const FieldNote& note) = 0;
  virtual void field(const char* name, std::string& value, const FieldNote& note) = 0;
  virtual void field(const char* name, at::Tensor& value, const FieldNote& note) = 0;
  virtual void field(const char* name, std::vector<int64_t>& value, const FieldNote& note) = 0;
  virtual void field(const char* name, std::vector<double>& value, const FieldNote& note) = 0;
  virtual void field(const char* name, std::vector<std::string>& value, const FieldNote& note) = 0;
  /// Before an optional field: whether it has a value, which the visitor may change. The field itself follows in any
  /// case.
  virtual void presence(const char* /*name*/, bool& /*present*/) {}
};

/// An object made of named fields.
class SGDPH_API Fields {
 public:
  virtual ~Fields() = default;
  virtual void visit(FieldVisitor& visitor) = 0;
  void save(torch::serialize::OutputArchive& archive) const;
  void load(torch::serialize::InputArchive& archive, int64_t format = kArchiveFormat);
};

/// What all our option classes have beyond LibTorch's: a field list and, from it, a check of every value.
class SGDPH_API CheckedOptions : public Fields {
 public:
  /// Throws with option, value and bound if one is out of range; `where` says whose options these are.
  void check(const std::string& where) const;
  /// Gives unset options the value that stands for them, where that does not hang on a number that may change (lr).
  virtual void fill_unset() {}

 protected:
  /// What bounds of single options cannot say.
  virtual void check_more(const std::string& /*where*/) const {}
};

/// Base of an option class: archive and learning rate access follow from the field list.
template <class Derived>
class SGDPH_API OptionsBase : public torch::optim::OptimizerCloneableOptions<Derived>, public CheckedOptions {
 public:
  void serialize(torch::serialize::InputArchive& archive) override { load(archive); }
  void serialize(torch::serialize::OutputArchive& archive) const override { save(archive); }
  double get_lr() const override { return static_cast<const Derived&>(*this).lr(); }
  void set_lr(const double lr) override { static_cast<Derived&>(*this).lr(lr); }
};

/// Base of a parameter's state. Every tensor in it has the shape of the parameter.
template <class Derived>
class SGDPH_API StateBase : public torch::optim::OptimizerCloneableParamState<Derived>, public Fields {
 public:
  void serialize(torch::serialize::InputArchive& archive) override { load(archive); }
  void serialize(torch::serialize::OutputArchive& archive) const override { save(archive); }
};

}  // namespace sgdph::detail

namespace sgdph {

// For optimizers of one's own, which keep options and states as ours do.
using detail::Fields;
using detail::FieldVisitor;
using detail::OptionsBase;
using detail::StateBase;

}  // namespace sgdph
