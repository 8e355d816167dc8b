#include "formats/torch_file.h"
#include "support/zip_archive.h"

#include <gtest/gtest.h>

namespace sgdph::test::torch_file_test {
namespace {

using namespace sgdph::lab;
using namespace sgdph::lab::formats;
using namespace std::string_literals;

std::string text(const std::string& value) {
  return "X" + little_endian(value.size(), 4) + value;
}

std::string whole(uint64_t value) {
  return "\x8a\x08"s + little_endian(value, 8);
}

/// _rebuild_tensor_v2 of a matrix of `rows` x 2 in storage "0", which is said to have `elements`.
std::string tensor(const std::string& type, uint64_t elements, uint64_t offset, uint64_t rows, uint64_t stride) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\n" + type + "\n" + text("0") +
         text("cpu") + whole(elements) + "tQ" + whole(offset) + whole(rows) + whole(2) + "\x86" + whole(stride) +
         whole(1) + "\x86\x89NtR";
}

std::string torch_bytes(const std::string& pickle, const std::string& storage) {
  return zip_archive({{"archive/data.pkl", pickle}, {"archive/data/0", storage}});
}

std::string refusal_of_torch_file(const std::string& bytes) {
  try {
    const TorchFile file(bytes);
    for (const auto& [name, stored] : file.tensors()) file.storage(stored);
  } catch (const DamagedFile& error) {
    return error.what();
  }
  return "";
}

TEST(TorchFile, DescribesTensorsByName) {
  const auto bytes = torch_bytes("}" + text("w") + tensor("FloatStorage", 8, 2, 3, 2) + "s.", std::string(32, 'x'));
  const TorchFile file(bytes);
  ASSERT_EQ(file.tensors().size(), 1U);
  const auto& stored = file.tensors().at("w");
  EXPECT_EQ(stored.type, ElementType::Float);
  EXPECT_EQ(stored.storage, "0");
  EXPECT_EQ(stored.offset, 2);
  EXPECT_EQ(stored.sizes, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(stored.strides, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(file.storage(stored), std::string(32, 'x'));
}

TEST(TorchFile, KnowsEveryElementTypeAndItsSize) {
  const std::vector<std::pair<std::string, size_t>> types{
      {"DoubleStorage", 8}, {"FloatStorage", 4}, {"HalfStorage", 2}, {"BFloat16Storage", 2}, {"LongStorage", 8},
      {"IntStorage", 4},    {"ShortStorage", 2}, {"CharStorage", 1}, {"ByteStorage", 1},     {"BoolStorage", 1}};
  for (const auto& [type, size] : types) {
    const auto pickle = "}" + text("w") + tensor(type, 4, 0, 2, 2) + "s.";
    EXPECT_EQ(refusal_of_torch_file(torch_bytes(pickle, std::string(4 * size, 'x'))), "") << type;
    EXPECT_NE(refusal_of_torch_file(torch_bytes(pickle, std::string(5 * size, 'x'))), "") << type;
  }
  EXPECT_EQ(
      refusal_of_torch_file(torch_bytes("}" + text("w") + tensor("QInt8Storage", 4, 0, 2, 2) + "s.", "")),
      "it holds a tensor of unknown type 'QInt8Storage'");
}

TEST(TorchFile, RefusesTensorsThatReachBeyondTheirStorage) {
  const auto refused = [](const std::string& tensor_pickle) {
    return refusal_of_torch_file(torch_bytes("}" + text("w") + tensor_pickle + "s.", std::string(16, 'x')));
  };
  EXPECT_EQ(refused(tensor("FloatStorage", 4, 0, 2, 2)), "");
  const auto* beyond = "a tensor reaches beyond its storage";
  EXPECT_EQ(refused(tensor("FloatStorage", 4, 1, 2, 2)), beyond);
  EXPECT_EQ(refused(tensor("FloatStorage", 4, 0, 3, 2)), beyond);
  EXPECT_EQ(refused(tensor("FloatStorage", 4, 0, 2, uint64_t{1} << 62U)), beyond);
  EXPECT_EQ(refused(tensor("FloatStorage", 4, 0, uint64_t{1} << 62U, 0)), beyond);
  EXPECT_EQ(refused(tensor("FloatStorage", 4, ~uint64_t{0}, 1, 1)), beyond);
  EXPECT_EQ(refused(tensor("FloatStorage", 5, 0, 2, 2)), "its storage '0' has another size than a tensor says");
}

TEST(TorchFile, RefusesNamesThatWouldBreakALine) {
  const auto pickle = "}" + text("a\nb") + tensor("FloatStorage", 4, 0, 2, 2) + "s.";
  EXPECT_EQ(
      refusal_of_torch_file(torch_bytes(pickle, std::string(16, 'x'))),
      "a key of its dict is not a name; save model.state_dict() from Python");
}

}  // namespace
}  // namespace sgdph::test::torch_file_test
