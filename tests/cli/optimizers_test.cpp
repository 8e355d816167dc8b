// Every optimizer of the catalogue is known to the command, with every option it has.

#include "optimizers/options.h"
#include "settings/settings.h"
#include "support/command.h"
#include "support/sample_data.h"

#include <algorithm>
#include <cctype>

namespace sgdph::test::optimizers_test {
namespace {

using lab::optimizers::optimizer_names;

bool is_part_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

/// Whether the text has it as a word of its own: adam is not in adamw, nor --init-lr in --init-lr-x.
bool has_word(const std::string& text, const std::string& word) {
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !is_part_of_word(text[at - 1]);
    const auto end = at + word.size();
    if (begins && (end == text.size() || !is_part_of_word(text[end]))) return true;
  }
  return false;
}

std::string flag_of(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return "--" + key;
}

/// "0.9,0.999" of a list.
std::string word_of(const nlohmann::json& value) {
  if (!value.is_array()) return lab::settings::plain_text(value);
  std::string word;
  for (const auto& part : value) word += (word.empty() ? "" : ",") + part.dump();
  return word;
}

Words options_of(const lab::optimizers::OptimizerValues& values) {
  Words words;
  for (const auto& [key, value] : values) {
    if (value.is_boolean()) {
      words.push_back(value.get<bool>() ? flag_of(key) : "--no-" + flag_of(key).substr(2));
    } else {
      words.push_back(flag_of(key) + "=" + word_of(value));
    }
  }
  return words;
}

std::string file_of(const std::string& name, const lab::optimizers::OptimizerValues& values) {
  std::string text = "[optimizer." + name + "]\n";
  for (const auto& [key, value] : values) text += key + " = " + value.dump() + "\n";
  return text;
}

class OptimizerOfTheCommand : public CommandTest, public testing::WithParamInterface<std::string> {
 protected:
  /// What a dry run says of its settings.
  static std::string settings_with(const Words& more) {
    const auto end = succeed(small(GetParam(), 1, "", Words{"--dry-run"} + more));
    return end.out + end.errors;
  }
};

TEST_P(OptimizerOfTheCommand, TakesEveryOptionOfItsOwnAtItsDefaultByTheCommandLineAndByAFile) {
  const auto values = lab::optimizers::resolve_optimizer(GetParam(), {});
  const auto by_itself = settings_with({});
  for (const auto& [key, value] : values) EXPECT_PRED2(has_word, by_itself, key) << value;
  EXPECT_EQ(settings_with(options_of(values)), by_itself);
  write_bytes(folder() / "own.toml", file_of(GetParam(), values));
  EXPECT_EQ(settings_with({"--config", "own.toml"}), by_itself);
}

INSTANTIATE_TEST_SUITE_P(Command, OptimizerOfTheCommand, testing::ValuesIn(optimizer_names()), [](const auto& info) {
  return test_name(info.param);
});

class Optimizers : public CommandTest {};

TEST_F(Optimizers, AreNamedByHelpCompletionAndLists) {
  const auto cost = succeed({"cost", "--help"}).out;
  const auto list = succeed({"list", "optimizers"}).out;
  const auto train = succeed({"train", "--help"}).out;
  const auto completion = succeed({"completion", "bash"}).out;
  for (const auto& name : optimizer_names()) {
    EXPECT_PRED2(has_word, cost, name);
    EXPECT_PRED2(has_word, list, name);
    EXPECT_PRED2(has_word, train, name);
    EXPECT_PRED2(has_word, completion, name);
  }
}

TEST_F(Optimizers, HaveEveryOptionInHelpAndCompletion) {
  const auto train = succeed({"train", "--help"}).out;
  const auto completion = succeed({"completion", "bash"}).out;
  for (const auto& entry : lab::optimizers::optimizer_entries()) {
    for (const auto& option : entry.options) {
      EXPECT_PRED2(has_word, train, flag_of(option.name)) << entry.info.name;
      EXPECT_PRED2(has_word, completion, flag_of(option.name)) << entry.info.name;
    }
  }
  for (const auto* flag : {"--fixed-decay", "--degenerated-to-sgd", "--init-lr"}) {
    EXPECT_PRED2(has_word, train, flag);
  }
}

}  // namespace
}  // namespace sgdph::test::optimizers_test
