#include "report/page.h"

#include "base/error.h"
#include "base/escape.h"
#include "report/figure.h"
#include "report/notes.h"
#include "report/page_data.h"
#include "report/page_files.h"
#include "report/sections.h"

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sgdph::lab::report {
namespace {

std::string_view page_file(std::string_view name) {
  const auto* file = find_embedded(page_files(), name);
  if (!file) throw std::logic_error("no page file " + std::string(name));
  return file->text;
}

/// The template with {{name}} replaced, in one pass: what is put in is not looked at again.
std::string filled(std::string_view text, const std::map<std::string_view, std::string>& values) {
  std::string out;
  size_t from = 0;
  for (size_t open = text.find("{{"); open != std::string_view::npos; open = text.find("{{", from)) {
    const auto close = text.find("}}", open);
    out += text.substr(from, open - from);
    out += values.at(text.substr(open + 2, close - open - 2));
    from = close + 2;
  }
  return out += text.substr(from);
}

std::string comparison_html(const Comparison& comparison, size_t index) {
  // For readers without scripts, a picture of what the paper shows too.
  tables::Document figure;
  figure.pictures({{fmt::format("{}: {}", kMetrics[0].title, comparison.title), curve_figure(comparison, 0), ""}});
  return filled(
      page_file("task.html"), {{"index", std::to_string(index)},
                               {"title", escape_html(comparison.title)},
                               {"results", results_of(comparison).html()},
                               {"figure", figure.html()},
                               {"details", details_of(comparison).html()}});
}

}  // namespace

std::string render_page(const ReportContent& content) {
  if (!find_embedded(page_files(), "chart.js")) {
    fail(
        "this sgdph was built without Chart.js, which the page needs; install libjs-chart.js and build again, or use "
        "--format markdown");
  }
  std::string links;
  std::string body;
  const auto link = [&](const std::string& id, const std::string& title) {
    links += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", id, escape_html(title));
  };
  const auto add_section = [&](const std::string& id, const std::string& title, const std::string& html) {
    body += filled(page_file("section.html"), {{"id", id}, {"title", escape_html(title)}, {"body", html}});
  };
  if (!content.notes.empty()) add_section("notes", "Notes", notes_html(content.notes));
  for (size_t i = 0; i < content.comparisons.size(); ++i) {
    link(fmt::format("task-{}", i), content.comparisons[i].title);
    body += comparison_html(content.comparisons[i], i);
  }
  for (const auto& section : sections_of(content)) {
    link(section.id, section.title);
    add_section(section.id, section.title, section.body.html());
  }
  return filled(
      page_file("page.html"), {{"title", escape_html(content.title)},
                               {"written", escape_html(content.written)},
                               {"links", links},
                               {"body", body},
                               {"data", page_data(content.comparisons)},
                               {"style", std::string(page_file("page.css"))},
                               {"chart", std::string(page_file("chart.js"))},
                               {"script", std::string(page_file("page.js"))}});
}

}  // namespace sgdph::lab::report
