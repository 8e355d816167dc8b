#include "formats/image_list.h"
#include "support/checks.h"

#include <gtest/gtest.h>

namespace sgdph::test::image_list_test {
namespace {

using namespace sgdph::lab;
using namespace sgdph::lab::formats;

std::string list_error(const std::string& bytes) {
  return error_of([&] { parse_image_list(bytes, "x.csv"); });
}

TEST(ImageList, ToleratesWindowsLinesAndABlankLastOne) {
  for (const std::string text :
       {"filename,label\na.jpg,n1\nb.jpg,n2", "filename,label\na.jpg,n1\nb.jpg,n2\n",
        "filename,label\r\na.jpg,n1\r\nb.jpg,n2\r\n\r\n"}) {
    const auto images = parse_image_list(text, "x");
    ASSERT_EQ(images.size(), 2U);
    EXPECT_EQ(images[1].filename, "b.jpg");
    EXPECT_EQ(images[1].label, "n2");
  }
}

TEST(ImageList, RefusesEachBadLineByNumber) {
  const std::string head = "filename,label\n";
  EXPECT_EQ(
      list_error("a.jpg,n1\n"),
      "x.csv:1: the first line is \"a.jpg,n1\" instead of 'filename,label'; put that line first");
  EXPECT_TRUE(contains(list_error(""), "x.csv:1: the first line is \"\""));
  EXPECT_EQ(list_error(head), "x.csv lists no images; get the file again");
  EXPECT_EQ(
      list_error(head + "a.jpg,n1\nb.jpg\n"),
      "x.csv:3: \"b.jpg\" is not of the form 'filename,label'; correct the line");
  EXPECT_TRUE(contains(list_error(head + "a,b,c\n"), "x.csv:2: \"a,b,c\" is not of the form"));
  EXPECT_TRUE(contains(list_error(head + "\na.jpg,n1\n"), "x.csv:2: \"\" is not of the form"));
  EXPECT_EQ(list_error(head + ",n1\n"), "x.csv:2: the filename is empty; correct the line");
  EXPECT_EQ(list_error(head + "a.jpg,\n"), "x.csv:2: the label is empty; correct the line");
  for (const std::string name : {"../a.jpg", "/etc/passwd", "a\\\\b.jpg", "..", "."}) {
    EXPECT_TRUE(contains(list_error(head + name + ",n1\n"), "is not a plain name; leave out the folders")) << name;
  }
  EXPECT_TRUE(contains(list_error(head + "a\rb.jpg,n1\n"), "has a control character"));
}

TEST(ImageList, ReadsQuotedFields) {
  const auto images = parse_image_list("filename,label\n\"a, b.jpg\",\"n\"\"1\"\n", "x");
  ASSERT_EQ(images.size(), 1U);
  EXPECT_EQ(images[0].filename, "a, b.jpg");
  EXPECT_EQ(images[0].label, "n\"1");
  EXPECT_TRUE(contains(list_error("filename,label\n\"../a.jpg\",n1\n"), "is not a plain name"));
}

}  // namespace
}  // namespace sgdph::test::image_list_test
