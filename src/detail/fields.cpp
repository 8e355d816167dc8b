#include <sgdph/detail/fields.h>

#include <torch/serialize/archive.h>

namespace sgdph::detail {
namespace {

class Saver final : public FieldVisitor {
 public:
  explicit Saver(torch::serialize::OutputArchive& archive) : archive_(archive) {}

  void operator()(const char* name, bool& value) override { archive_.write(name, c10::IValue(value)); }
  void operator()(const char* name, int64_t& value) override { archive_.write(name, c10::IValue(value)); }
  void operator()(const char* name, double& value) override { archive_.write(name, c10::IValue(value)); }
  void operator()(const char* name, std::string& value) override { archive_.write(name, c10::IValue(value)); }
  void operator()(const char* name, at::Tensor& value) override {
    archive_.write(std::string(name) + "_set", c10::IValue(value.defined()));
    if (value.defined()) archive_.write(name, c10::IValue(value));
  }
  void operator()(const char* name, std::vector<int64_t>& value) override { archive_.write(name, c10::IValue(value)); }
  void operator()(const char* name, std::vector<double>& value) override { archive_.write(name, c10::IValue(value)); }

 private:
  torch::serialize::OutputArchive& archive_;
};

class Loader final : public FieldVisitor {
 public:
  explicit Loader(torch::serialize::InputArchive& archive) : archive_(archive) {}

  void operator()(const char* name, bool& value) override { value = read(name, &c10::IValue::isBool).toBool(); }
  void operator()(const char* name, int64_t& value) override { value = read(name, &c10::IValue::isInt).toInt(); }
  void operator()(const char* name, double& value) override { value = read(name, &c10::IValue::isDouble).toDouble(); }
  void operator()(const char* name, std::string& value) override {
    value = read(name, &c10::IValue::isString).toStringRef();
  }
  void operator()(const char* name, at::Tensor& value) override {
    const bool defined = read(std::string(name) + "_set", &c10::IValue::isBool).toBool();
    value = defined ? read(name, &c10::IValue::isTensor).toTensor() : at::Tensor();
  }
  void operator()(const char* name, std::vector<int64_t>& value) override {
    value = read(name, &c10::IValue::isIntList).toIntVector();
  }
  void operator()(const char* name, std::vector<double>& value) override {
    value = read(name, &c10::IValue::isDoubleList).toDoubleVector();
  }

 private:
  c10::IValue read(const std::string& name, bool (c10::IValue::*is_type)() const) {
    c10::IValue value;
    TORCH_CHECK(archive_.try_read(name, value), "sgdph: the archive lacks the field '", name, "'");
    TORCH_CHECK((value.*is_type)(), "sgdph: field '", name, "' of the archive has the wrong type, ", value.tagKind());
    return value;
  }

  torch::serialize::InputArchive& archive_;
};

}  // namespace

void Fields::save(torch::serialize::OutputArchive& archive) const {
  Saver saver(archive);
  // A visitor may change fields; this one does not.
  const_cast<Fields*>(this)->visit(saver);
}

void Fields::load(torch::serialize::InputArchive& archive) {
  Loader loader(archive);
  visit(loader);
}

}  // namespace sgdph::detail
