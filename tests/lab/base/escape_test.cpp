#include "base/escape.h"

#include <gtest/gtest.h>

namespace sgdph::lab::escape_test {
namespace {

TEST(Escape, HtmlHasNoMarkupLeft) {
  EXPECT_EQ(escape_html("a<b a=\"1\">&amp;</b>"), "a&lt;b a=&quot;1&quot;&gt;&amp;amp;&lt;/b&gt;");
  EXPECT_EQ(escape_html("plain 'text'"), "plain 'text'");
}

TEST(Escape, MarkdownIsOneLineWithoutMarks) {
  EXPECT_EQ(escape_markdown("a_b|*c*\n<d> 1.5"), "a\\_b\\|\\*c\\* \\<d\\> 1.5");
}

TEST(Escape, AManualPageKeepsHyphensAndBeginsNoRequest) {
  EXPECT_EQ(escape_man("--lr a\\b"), "\\-\\-lr a\\eb");
  EXPECT_EQ(escape_man(".TH"), "\\&.TH");
  EXPECT_EQ(escape_man("'x'"), "\\&'x'");
  EXPECT_EQ(escape_man("a.b"), "a.b");
}

TEST(Escape, CsvIsQuotedWhereItHasToBe) {
  EXPECT_EQ(escape_csv("plain text"), "plain text");
  EXPECT_EQ(escape_csv("a,b"), "\"a,b\"");
  EXPECT_EQ(escape_csv("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(escape_csv("two\nlines"), "\"two\nlines\"");
}

TEST(Escape, AScriptIsNotEndedByItsJson) {
  EXPECT_EQ(escape_script(R"({"a":"</script>&"})"), R"({"a":"\u003c/script\u003e\u0026"})");
}

TEST(Escape, AMessageIsOneLineThatCommandsNoTerminal) {
  EXPECT_EQ(one_line("a \x1b[31mb\n\x7f Größe"), "a \\x1b[31mb\\x0a\\x7f Größe");
  EXPECT_EQ(printable(std::string(81, 'a')), std::string(80, 'a') + "...");
}

TEST(Escape, ASlugIsOfSmallLettersDigitsAndDots) {
  EXPECT_EQ(slug_of("CIFAR10, ResNet18: lr 0.1!", "task"), "cifar10-resnet18-lr-0.1");
  EXPECT_EQ(slug_of("../", "task"), "task");
  EXPECT_EQ(slug_of("??", "task"), "task");
  EXPECT_EQ(slug_of(std::string(300, 'a'), "task").size(), 100U);
}

TEST(Escape, Base64IsThatOfTheStandard) {
  const std::string word = "foobar";
  const char* codes[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};  // RFC 4648, section 10
  for (size_t i = 0; i <= word.size(); ++i) EXPECT_EQ(base64(word.substr(0, i)), codes[i]);
  EXPECT_EQ(base64("\xff\xfe"), "//4=");
}

TEST(Escape, Utf8IsKnownAndMended) {
  const std::string good = "Größe, 中文, 😀";
  EXPECT_TRUE(is_utf8(good));
  EXPECT_EQ(as_utf8(good), good);
  for (const std::string bad : {"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\xaf"}) EXPECT_FALSE(is_utf8(bad));
  EXPECT_EQ(
      as_utf8("a\xff"
              "b"),
      "a\xef\xbf\xbd"
      "b");
}

TEST(Escape, ControlCharactersAreShownAsEscapes) {
  EXPECT_EQ(printable("layer.0\n\x7F"), "layer.0\\x0a\\x7f");
  EXPECT_EQ(printable("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(printable(std::string(81, 'a')), std::string(80, 'a') + "...");
  EXPECT_TRUE(has_control_character(std::string("a\0b", 3)));
  EXPECT_FALSE(has_control_character("a b"));
}

}  // namespace
}  // namespace sgdph::lab::escape_test
