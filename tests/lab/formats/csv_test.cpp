#include "formats/csv.h"
#include "support/checks.h"

#include <gtest/gtest.h>

namespace sgdph::test::csv_test {
namespace {

using lab::formats::CsvReader;
using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(std::string_view bytes) {
  CsvReader reader(bytes, "x.csv");
  Rows rows;
  while (reader.next()) rows.push_back(reader.fields());
  return rows;
}

TEST(Csv, FieldsStandBetweenCommas) {
  EXPECT_EQ(rows_of("a,b\n1,2\n"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(rows_of("a,,\n,\n"), (Rows{{"a", "", ""}, {"", ""}}));
  EXPECT_EQ(rows_of(" a ,b"), (Rows{{" a ", "b"}}));
}

TEST(Csv, LinesMayEndAsOnWindowsAndTheLastMayBeBlank) {
  for (const auto* text : {"a\nb", "a\nb\n", "a\r\nb\r\n", "a\r\nb\r\n\r\n"}) {
    EXPECT_EQ(rows_of(text), (Rows{{"a"}, {"b"}})) << text;
  }
  EXPECT_EQ(rows_of("a\n\nb\n"), (Rows{{"a"}, {""}, {"b"}}));
  EXPECT_EQ(rows_of(""), Rows{});
  EXPECT_EQ(rows_of("\n"), Rows{});
}

TEST(Csv, QuotedFieldsHoldCommasAndQuotes) {
  EXPECT_EQ(rows_of(R"("a,b",c)"), (Rows{{"a,b", "c"}}));
  EXPECT_EQ(rows_of(R"("say ""yes""","")"), (Rows{{"say \"yes\"", ""}}));
  EXPECT_EQ(rows_of(R"("""",x)"), (Rows{{"\"", "x"}}));
  EXPECT_EQ(rows_of(R"(3" disk,5")"), (Rows{{"3\" disk", "5\""}}));
}

TEST(Csv, RefusesAQuoteThatGoesWrongByLine) {
  EXPECT_EQ(error_of([] { rows_of("a\n\"b,c\nd\"\n"); }), "x.csv:2: a quote does not end; correct the line");
  EXPECT_EQ(error_of([] { rows_of("\"a\"b,c\n"); }), "x.csv:1: text follows a quote; correct the line");
}

TEST(Csv, SaysWhereItIs) {
  CsvReader reader("a\n\"b\",c\n", "x.csv");
  ASSERT_TRUE(reader.next());
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.place(), "x.csv:2");
  EXPECT_EQ(reader.line(), "\"b\",c");
  EXPECT_FALSE(reader.next());
}

}  // namespace
}  // namespace sgdph::test::csv_test
