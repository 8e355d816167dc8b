#pragma once

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

namespace sgdph::test {

/// Every tag is closed in order; the text may have no bare ampersand.
inline void expect_well_formed(const std::string& svg) {
  const std::regex tag("<(/?)([a-zA-Z]+)((?:\\s+[-a-zA-Z0-9]+=\"[^\"<]*\")*)\\s*(/?)>");
  std::vector<std::string> open;
  size_t end = 0;
  for (std::sregex_iterator it(svg.begin(), svg.end(), tag), none; it != none; ++it) {
    const auto between = svg.substr(end, static_cast<size_t>(it->position()) - end);
    EXPECT_EQ(between.find_first_of("<>"), std::string::npos) << between;
    EXPECT_FALSE(std::regex_search(between, std::regex("&(?!(amp|lt|gt|quot);)"))) << between;
    end = static_cast<size_t>(it->position() + it->length());
    if ((*it)[1] == "/") {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), (*it)[2]);
      open.pop_back();
    } else if ((*it)[4] != "/") {
      open.push_back((*it)[2]);
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(svg.substr(end), "\n");
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

}  // namespace sgdph::test
