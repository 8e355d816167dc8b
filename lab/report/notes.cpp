#include "report/notes.h"

#include "base/markup.h"

#include <fmt/format.h>

#include <sstream>
#include <string_view>

namespace sgdph::lab {
namespace {

/// The text with `code` marked; a backtick without another is a backtick.
std::string with_code(std::string_view text) {
  std::string html;
  while (true) {
    const auto open = text.find('`');
    const auto close = open == std::string_view::npos ? open : text.find('`', open + 1);
    if (close == std::string_view::npos) return html + escape_markup(text);
    html += escape_markup(text.substr(0, open));
    html += fmt::format("<code>{}</code>", escape_markup(text.substr(open + 1, close - open - 1)));
    text.remove_prefix(close + 1);
  }
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
