// State dicts: what is saved comes back, and what is not one is refused without touching the model.

#include "models/state_dict.h"
#include "base/error.h"
#include "models/image_model.h"
#include "models/models.h"

#include <caffe2/serialize/inline_container.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <random>

namespace sgdph::lab::models::state_dict_test {
namespace {

namespace nn = torch::nn;
using Dict = c10::Dict<std::string, at::Tensor>;

nn::Sequential small_model(int64_t seed) {
  torch::manual_seed(seed);
  return nn::Sequential(nn::Conv2d(2, 3, 3), nn::BatchNorm2d(3), nn::Linear(4, 2));
}

std::vector<at::Tensor> snapshot(const nn::Module& model) {
  std::vector<at::Tensor> tensors;
  for (const auto& tensor : model.parameters()) tensors.push_back(tensor.detach().clone());
  for (const auto& tensor : model.buffers()) tensors.push_back(tensor.detach().clone());
  return tensors;
}

bool same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].equal(b[i])) return false;
  }
  return true;
}

/// The parts of a file as torch.save lays them out.
struct Parts {
  std::string pickle;
  std::vector<std::string> storages;
};

Parts parts_of(const c10::IValue& value) {
  Parts parts;
  torch::jit::Pickler pickler(
      [&](const char* data, size_t size) { parts.pickle.append(data, size); }, nullptr, nullptr, nullptr, nullptr,
      /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(value);
  pickler.stop();
  for (const auto& tensor : pickler.tensorData()) {
    const auto data = torch::jit::getWriteableTensorData(tensor);
    parts.storages.emplace_back(data.data(), data.sizeInBytes());
  }
  return parts;
}

std::string archive(const Parts& parts) {
  std::string bytes;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
    return size;
  });
  writer.writeRecord("data.pkl", parts.pickle.data(), parts.pickle.size());
  for (size_t i = 0; i < parts.storages.size(); ++i) {
    writer.writeRecord("data/" + std::to_string(i), parts.storages[i].data(), parts.storages[i].size());
  }
  writer.writeEndOfFile();
  return bytes;
}

std::string file_of(const c10::IValue& value) {
  return archive(parts_of(value));
}

Dict dict_of(const nn::Module& model) {
  Dict dict;
  for (const auto& item : model.named_parameters()) dict.insert(item.key(), item.value().detach().clone());
  for (const auto& item : model.named_buffers()) dict.insert(item.key(), item.value().clone());
  return dict;
}

/// The message of the refusal; fails if the model is not as it was before.
std::string refusal(const std::string& bytes) {
  auto model = small_model(2);
  const auto before = snapshot(*model);
  std::string message;
  try {
    load_state_dict(*model, bytes, "weights.pt");
  } catch (const UserError& error) {
    message = error.what();
    EXPECT_TRUE(same(snapshot(*model), before)) << message;
  }
  return message;
}

/// Loads into a model of other values; true if it has become `expected`.
bool restores(const std::string& bytes, const nn::Sequential& expected) {
  auto model = small_model(2);
  load_state_dict(*model, bytes, "weights.pt");
  return same(snapshot(*model), snapshot(*expected));
}

#define EXPECT_REFUSED(bytes, ...)                                 \
  do {                                                             \
    const auto message = refusal(bytes);                           \
    EXPECT_EQ(message.find("weights.pt"), 0) << message;           \
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;   \
    for (const std::string text : {__VA_ARGS__}) {                 \
      EXPECT_NE(message.find(text), std::string::npos) << message; \
    }                                                              \
  } while (false)

TEST(StateDict, ComesBackAsItWasForEveryNorm) {
  for (const auto& norm : norm_names()) {
    ModelOptions options;
    options.name = "resnet8";
    options.norm = norm_from_name(norm);
    torch::manual_seed(1);
    const auto saved = make_model(options);
    saved->forward(torch::randn({4, 3, 16, 16}));  // moves the running statistics
    const auto loaded = make_model(options);
    load_state_dict(*loaded, save_state_dict(*saved), "memory");
    EXPECT_TRUE(same(snapshot(*loaded), snapshot(*saved))) << norm;
    for (const auto& parameter : loaded->parameters()) EXPECT_TRUE(parameter.requires_grad());
  }
}

TEST(StateDict, IsReadByLibTorchsOwnReader) {
  const auto model = small_model(1);
  const auto bytes = save_state_dict(*model);
  const auto dict = torch::pickle_load({bytes.begin(), bytes.end()}).toGenericDict();
  EXPECT_EQ(dict.size(), 9);
  EXPECT_TRUE(dict.at("0.weight").toTensor().equal(model->named_parameters()["0.weight"]));
}

TEST(StateDict, SavesTheElementsOfAViewOnly) {
  auto model = small_model(1);
  auto large = torch::randn({100, 4});
  model->named_parameters()["2.weight"].set_data(large.slice(0, 10, 12));
  model->named_parameters()["0.weight"].set_data(
      model->named_parameters()["0.weight"].contiguous(at::MemoryFormat::ChannelsLast));
  const auto bytes = save_state_dict(*model);
  EXPECT_LT(bytes.size(), 5000);
  EXPECT_TRUE(restores(bytes, model));
}

TEST(StateDict, ComesOutOfSharedStoragesViewsAndOtherOrders) {
  const auto model = small_model(1);
  auto dict = dict_of(*model);
  const auto shared = torch::randn({100});
  model->named_parameters()["0.bias"].data().copy_(shared.slice(0, 5, 8));
  model->named_parameters()["2.weight"].data().copy_(shared.slice(0, 20, 28).view({4, 2}).t());
  dict.insert_or_assign("0.bias", shared.slice(0, 5, 8));
  dict.insert_or_assign("2.weight", shared.slice(0, 20, 28).view({4, 2}).t());
  dict.insert_or_assign("0.weight", dict.at("0.weight").contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(restores(file_of(dict), model));
}

TEST(StateDict, MayBeWrappedWithOtherThingsBesideAndPrefixed) {
  const auto model = small_model(1);
  Dict prefixed;
  for (const auto& item : dict_of(*model)) prefixed.insert("module." + item.key(), item.value());
  EXPECT_TRUE(restores(file_of(prefixed), model));
  for (const std::string key : {"state_dict", "model"}) {
    for (const auto& inner : {dict_of(*model), prefixed}) {
      c10::impl::GenericDict outer(c10::StringType::get(), c10::AnyType::get());
      outer.insert("epoch", 3);
      outer.insert("best", c10::IValue());
      outer.insert("rate", 0.5);
      outer.insert("optimizer", c10::List<at::Tensor>({torch::ones({2})}));
      outer.insert(key, inner);
      EXPECT_TRUE(restores(file_of(outer), model)) << key;
    }
  }
}

TEST(StateDict, ConvertsFloatingTypes) {
  const auto model = small_model(1);
  for (const auto dtype : {torch::kDouble, torch::kHalf, torch::kBFloat16}) {
    auto dict = dict_of(*model);
    for (const auto& item : dict) {
      if (item.value().is_floating_point()) item.setValue(item.value().to(dtype));
    }
    auto expected = small_model(1);
    expected->to(dtype);
    expected->to(torch::kFloat);
    EXPECT_TRUE(restores(file_of(dict), expected));
  }
}

TEST(StateDict, NeedsNoBatchCounter) {
  const auto model = small_model(1);
  auto dict = dict_of(*model);
  ASSERT_EQ(dict.erase("1.num_batches_tracked"), 1);
  EXPECT_TRUE(restores(file_of(dict), model));
}

TEST(StateDict, OfAnotherModelIsRefusedByName) {
  auto dict = dict_of(*small_model(1));
  ASSERT_EQ(dict.erase("0.weight"), 1);
  EXPECT_REFUSED(file_of(dict), "1 missing (0.weight)");
  for (const auto* name : {"a", "b", "c", "d"}) dict.insert(name, torch::ones({1}));
  EXPECT_REFUSED(file_of(dict), "1 missing (0.weight)", "4 unexpected (a, b, c, ...)", "choose the model");
}

TEST(StateDict, OfAnotherShapeOrTypeIsRefusedWithBoth) {
  auto dict = dict_of(*small_model(1));
  dict.insert_or_assign("2.weight", torch::ones({5, 4}));
  EXPECT_REFUSED(file_of(dict), "'2.weight'", "[5, 4]", "[2, 4]");
  dict = dict_of(*small_model(1));
  dict.insert_or_assign("2.bias", torch::ones({2}, torch::kLong));
  EXPECT_REFUSED(file_of(dict), "'2.bias'", "Long", "Float");
  dict = dict_of(*small_model(1));
  dict.insert_or_assign("2.bias", torch::ones({1}).expand({2}).contiguous().to(torch::kBool));
  EXPECT_REFUSED(file_of(dict), "'2.bias'", "Bool", "Float");
}

TEST(StateDict, MustBeADictOfTensors) {
  EXPECT_REFUSED(file_of(torch::ones({2})), "no dict of tensors", "state_dict()");
  EXPECT_REFUSED(file_of(c10::IValue(3)), "no dict of tensors");
  c10::impl::GenericDict mixed(c10::StringType::get(), c10::AnyType::get());
  mixed.insert("net", 3);
  EXPECT_REFUSED(file_of(mixed), "'net' is not a tensor");
}

TEST(StateDict, OfAnotherFormatIsRefusedWithTheRemedy) {
  EXPECT_REFUSED(std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.rest"), "torch >= 1.6");
  EXPECT_REFUSED(std::string("hello"), "not a file of torch.save");
  EXPECT_REFUSED(std::string(), "not a file of torch.save");
  std::ostringstream script;
  torch::serialize::OutputArchive out;
  small_model(1)->save(out);
  out.save_to(script);
  EXPECT_REFUSED(script.str(), "TorchScript archive", "state_dict()");
}

TEST(StateDict, CutShortAtAnyPlaceIsRefused) {
  const auto bytes = save_state_dict(*small_model(1));
  for (size_t size = 0; size < bytes.size(); size += 7) EXPECT_REFUSED(bytes.substr(0, size), "weights.pt");
}

TEST(StateDict, WithAFlippedBitIsRefusedOrUnharmed) {
  const auto model = small_model(1);
  const auto bytes = save_state_dict(*model);
  int64_t refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    auto damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    if (refusal(damaged).empty()) {
      EXPECT_TRUE(restores(damaged, model)) << "byte " << i;  // in padding, dates and the like
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(StateDict, WithADamagedPickleUnderARightChecksumNeverCrashes) {
  const auto good = parts_of(dict_of(*small_model(1)));
  std::mt19937 random(5);
  int64_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    auto bad = good;
    const auto changes = 1 + random() % 3;
    for (size_t i = 0; i < changes; ++i) bad.pickle[random() % bad.pickle.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bad.pickle.erase(random() % bad.pickle.size(), random() % 20);
    refused += refusal(archive(bad)).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 15000);
}

TEST(StateDict, WithTensorsBeyondTheirStorageIsRefused) {
  auto parts = parts_of(dict_of(*small_model(1)));
  auto cut = parts;
  cut.storages[0].resize(cut.storages[0].size() - 4);
  EXPECT_REFUSED(archive(cut), "another size");
  cut.storages[0].resize(cut.storages[0].size() - 1);
  EXPECT_REFUSED(archive(cut), "within an element");
  cut.storages.pop_back();
  EXPECT_REFUSED(archive(cut), "weights.pt");
}

TEST(StateDict, NestedDeeplyIsReadWithoutExhaustingTheStack) {
  Parts parts;
  parts.pickle = "\x80\x02" + std::string(1000000, ']') + std::string(999999, 'a') + ".";
  EXPECT_REFUSED(archive(parts), "no dict of tensors");
}

}  // namespace
}  // namespace sgdph::lab::models::state_dict_test
