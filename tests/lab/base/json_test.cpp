#include "base/json.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/checks.h"

namespace sgdph::lab::json_test {
namespace {

using test::contains;
using test::error_of;

TEST(CheckedJson, HoldsNumbersThatFitOurs) {
  for (const auto* text :
       {"{}", "[0,-1,9223372036854775807,-9223372036854775808]", "{\"a\":1e308,\"b\":-2.5E-400}", "1e+36",
        "{\"99999999999999999999\":\"1e999 \\\" 99999999999999999999\"}", "0.12345678901234567890123",
        "no JSON, -, 5"}) {
    EXPECT_EQ(error_of([&] { check_json(text, "f"); }), "") << text;
  }
}

TEST(CheckedJson, IsRefusedWithFileAndLineWhereANumberIsTooLarge) {
  for (const auto* number :
       {"9223372036854775808", "18446744073709551616", "-9223372036854775809", "1e400", "-1e999"}) {
    const auto text = "{\"a\": 1,\n \"b\": [2, " + std::string(number) + "]}";
    const auto error = error_of([&] { check_json(text, "file", 7); });
    EXPECT_EQ(error, "file:8: the number " + std::string(number) + " is too large");
  }
}

TEST(CheckedJson, IsRefusedWhereItNestsWithoutEnd) {
  EXPECT_EQ(error_of([] { check_json(std::string(64, '[') + std::string(64, ']'), "f"); }), "");
  EXPECT_TRUE(contains(error_of([] { check_json(std::string(65, '['), "f"); }), "f:1: nested more than 64 deep"));
}

}  // namespace
}  // namespace sgdph::lab::json_test
