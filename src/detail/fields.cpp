#include <sgdph/detail/fields.h>

#include "detail/option_fields.h"

#include <torch/serialize/archive.h>

namespace sgdph::detail {
namespace {

/// An absent value is a flag of its own in an archive.
std::string flag_of(const char* name) {
  return std::string(name) + "_set";
}

class Saver final : public FieldVisitor {
 public:
  explicit Saver(torch::serialize::OutputArchive& archive) : archive_(archive) {}

 private:
  void field(const char* name, bool& value, const FieldNote&) override { write(name, value); }
  void field(const char* name, int64_t& value, const FieldNote&) override { write(name, value); }
  void field(const char* name, double& value, const FieldNote&) override { write(name, value); }
  void field(const char* name, std::string& value, const FieldNote&) override { write(name, value); }
  void field(const char* name, at::Tensor& value, const FieldNote&) override {
    write(flag_of(name), value.defined());
    if (value.defined()) write(name, value);
  }
  void field(const char* name, std::vector<int64_t>& value, const FieldNote&) override { write(name, value); }
  void field(const char* name, std::vector<double>& value, const FieldNote&) override { write(name, value); }
  void field(const char* name, std::vector<std::string>& value, const FieldNote&) override { write(name, value); }
  void presence(const char* name, bool& present) override { write(flag_of(name), present); }

  template <class T>
  void write(const std::string& name, const T& value) {
    archive_.write(name, c10::IValue(value));
  }

  torch::serialize::OutputArchive& archive_;
};

class Loader final : public FieldVisitor {
 public:
  Loader(torch::serialize::InputArchive& archive, int64_t format) : archive_(archive), format_(format) {}
  int64_t format() const override { return format_; }

 private:
  void field(const char* name, bool& value, const FieldNote&) override {
    value = read(name, &c10::IValue::isBool).toBool();
  }
  void field(const char* name, int64_t& value, const FieldNote&) override {
    value = read(name, &c10::IValue::isInt).toInt();
  }
  void field(const char* name, double& value, const FieldNote&) override {
    value = read(name, &c10::IValue::isDouble).toDouble();
  }
  void field(const char* name, std::string& value, const FieldNote&) override {
    value = read(name, &c10::IValue::isString).toStringRef();
  }
  void field(const char* name, at::Tensor& value, const FieldNote&) override {
    const bool defined = read(flag_of(name), &c10::IValue::isBool).toBool();
    value = defined ? read(name, &c10::IValue::isTensor).toTensor() : at::Tensor();
  }
  void field(const char* name, std::vector<int64_t>& value, const FieldNote&) override {
    value = read(name, &c10::IValue::isIntList).toIntVector();
  }
  void field(const char* name, std::vector<double>& value, const FieldNote&) override {
    value = read(name, &c10::IValue::isDoubleList).toDoubleVector();
  }
  void field(const char* name, std::vector<std::string>& value, const FieldNote&) override {
    value.clear();
    const auto list = read(name, &c10::IValue::isList);
    for (const auto& item : list.toListRef()) {
      TORCH_CHECK(item.isString(), "sgdph: field '", name, "' of the archive holds something else than text");
      value.push_back(item.toStringRef());
    }
  }
  void presence(const char* name, bool& present) override {
    present = read(flag_of(name), &c10::IValue::isBool).toBool();
  }

  c10::IValue read(const std::string& name, bool (c10::IValue::*is_type)() const) {
    c10::IValue value;
    TORCH_CHECK(archive_.try_read(name, value), "sgdph: the archive lacks the field '", name, "'");
    TORCH_CHECK((value.*is_type)(), "sgdph: field '", name, "' of the archive has the wrong type, ", value.tagKind());
    return value;
  }

  torch::serialize::InputArchive& archive_;
  int64_t format_;
};

}  // namespace

void Fields::save(torch::serialize::OutputArchive& archive) const {
  Saver saver(archive);
  // A visitor may change fields; this one does not.
  const_cast<Fields*>(this)->visit(saver);
}

void Fields::load(torch::serialize::InputArchive& archive, int64_t format) {
  Loader loader(archive, format);
  visit(loader);
}

void CheckedOptions::check(const std::string& where) const {
  check_fields(const_cast<CheckedOptions&>(*this), where);
  check_more(where);
}

}  // namespace sgdph::detail
