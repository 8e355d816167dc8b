#include "report/notes.h"

#include "base/escape.h"

#include <fmt/format.h>

#include <sstream>
#include <string_view>

namespace sgdph::lab {
namespace {

/// What stands between two marks in an element, and `outside` of the rest; a mark without another is a mark.
template <class Outside>
std::string with_element(std::string_view text, std::string_view mark, const char* element, const Outside& outside) {
  std::string html;
  while (true) {
    const auto open = text.find(mark);
    const auto begin = open + mark.size();
    const auto close = open == std::string_view::npos ? open : text.find(mark, begin);
    if (close == std::string_view::npos) return html + outside(text);
    html += outside(text.substr(0, open));
    html += fmt::format("<{0}>{1}</{0}>", element, escape_html(text.substr(begin, close - begin)));
    text.remove_prefix(close + mark.size());
  }
}

std::string with_strong(std::string_view text) {
  return with_element(text, "**", "strong", [](std::string_view rest) { return escape_html(rest); });
}

std::string with_code(std::string_view text) {
  return with_element(text, "`", "code", with_strong);
}

/// Lines that belong together, under construction.
class Block {
 public:
  void add(const char* element, const std::string& text) {
    end();
    element_ = element;
    text_ = text;
  }
  void go_on(const std::string& text) {
    if (element_.empty()) return add("p", text);
    text_ += " " + text;
  }
  void end() {
    if (element_.empty()) return;
    const bool item = element_ == "li";
    if (item != in_list_) html_ += item ? "<ul>\n" : "</ul>\n";
    in_list_ = item;
    html_ += fmt::format("<{0}>{1}</{0}>\n", element_, with_code(text_));
    element_.clear();
  }
  std::string html() {
    end();
    return in_list_ ? html_ + "</ul>\n" : html_;
  }

 private:
  std::string element_;
  std::string text_;
  std::string html_;
  bool in_list_ = false;
};

}  // namespace

std::string notes_html(const std::string& text) {
  Block block;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto start = line.find_first_not_of(" \t\r");
    if (start == std::string::npos) {
      block.end();
    } else if (line.rfind("## ", 0) == 0) {
      block.add("h3", line.substr(3));
      block.end();
    } else if (line.rfind("- ", 0) == 0) {
      block.add("li", line.substr(2));
    } else {
      block.go_on(line.substr(start));
    }
  }
  return block.html();
}

}  // namespace sgdph::lab
