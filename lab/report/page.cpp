#include "report/page.h"

#include "base/error.h"
#include "base/escape.h"
#include "report/figure.h"
#include "report/sections.h"

#include <cmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sgdph::lab::report {
namespace {

constexpr int kHighestHeading = 3;
constexpr int kLowestHeading = 6;

template <auto function>
struct Release {
  template <class T>
  void operator()(T* object) const {
    function(object);
  }
};
using Node = std::unique_ptr<cmark_node, Release<cmark_node_free>>;
using Iterator = std::unique_ptr<cmark_iter, Release<cmark_iter_free>>;
using Text = std::unique_ptr<char, Release<std::free>>;

void put_in_place(cmark_node* old, cmark_node* other) {
  cmark_node_replace(old, other);
  cmark_node_free(old);
}

cmark_node* text_node(const char* literal) {
  auto* node = cmark_node_new(CMARK_NODE_TEXT);
  cmark_node_set_literal(node, literal);
  return node;
}

cmark_node* link_to(cmark_node* image) {
  auto* link = cmark_node_new(CMARK_NODE_LINK);
  cmark_node_set_url(link, cmark_node_get_url(image));
  while (auto* child = cmark_node_first_child(image)) cmark_node_append_child(link, child);
  return link;
}

/// A node may be replaced when the iterator leaves it, and one without children when it comes to it.
void tame(cmark_node* node, cmark_event_type event) {
  switch (cmark_node_get_type(node)) {
    case CMARK_NODE_HTML_INLINE: return put_in_place(node, text_node(cmark_node_get_literal(node)));
    case CMARK_NODE_HTML_BLOCK: {
      auto* paragraph = cmark_node_new(CMARK_NODE_PARAGRAPH);
      cmark_node_append_child(paragraph, text_node(cmark_node_get_literal(node)));
      return put_in_place(node, paragraph);
    }
    case CMARK_NODE_IMAGE:
      if (event == CMARK_EVENT_EXIT) put_in_place(node, link_to(node));
      return;
    case CMARK_NODE_HEADING:
      if (event == CMARK_EVENT_EXIT) {
        const auto level = cmark_node_get_heading_level(node) + 1;
        cmark_node_set_heading_level(node, std::clamp(level, kHighestHeading, kLowestHeading));
      }
      return;
    default: return;
  }
}

using nlohmann::json;

/// Figures of five digits, which keeps the page small; JSON has null for what is no number.
std::vector<double> rounded(std::vector<double> values) {
  for (auto& value : values) value = std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
  return values;
}

json series_json(const Series& series) {
  auto mean = json::array();
  auto deviation = json::array();
  for (const auto& curve : series.curves.metrics) {
    mean.push_back(rounded(curve.mean));
    deviation.push_back(rounded(curve.deviation));
  }
  return {
      {"label", series.label},
      {"color", series.style.colour},
      {"dash", series.style.dashes},
      {"epoch", series.curves.epochs},
      {"seconds", rounded(series.curves.seconds)},
      {"runs", series.curves.counts},
      {"mean", mean},
      {"std", deviation}};
}

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
  figure.pictures(
      {{fmt::format("{}: {}", comparison.metrics()[0].title, comparison.title),
        comparison.is_single() ? accuracy_figure(comparison) : curve_figure(comparison, 0), ""}});
  return filled(
      page_file("task.html"), {{"index", std::to_string(index)},
                               {"title", escape_html(comparison.title)},
                               {"results", results_of(comparison).html()},
                               {"figure", figure.html()},
                               {"details", details_of(comparison).html()}});
}

}  // namespace

std::string notes_html(const std::string& text) {
  const Node document(cmark_parse_document(text.data(), text.size(), CMARK_OPT_DEFAULT));
  const Iterator at(cmark_iter_new(document.get()));
  for (auto event = cmark_iter_next(at.get()); event != CMARK_EVENT_DONE; event = cmark_iter_next(at.get())) {
    tame(cmark_iter_get_node(at.get()), event);
  }
  const Text html(cmark_render_html(document.get(), CMARK_OPT_NOBREAKS));
  return html.get();
}

std::string page_data(const std::vector<Comparison>& comparisons) {
  json data{{"tasks", json::array()}};
  for (const auto& comparison : comparisons) {
    auto list = json::array();
    for (const auto& series : comparison.series) {
      if (!series.runs.empty()) list.push_back(series_json(series));
    }
    auto metrics = json::array();
    for (const auto& metric : comparison.metrics()) metrics.push_back({{"title", metric.title}, {"unit", metric.unit}});
    data["tasks"].push_back({{"metrics", metrics}, {"series", list}});
  }
  return escape_script(data.dump());
}

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
    body += fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, escape_html(title), html);
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
