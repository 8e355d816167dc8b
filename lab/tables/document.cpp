#include "tables/document.h"

#include "base/escape.h"
#include "base/files.h"

#include <fmt/format.h>

namespace sgdph::lab::tables {
namespace {

std::string markdown_heading(const std::string& words, int level) {
  return fmt::format("{:#<{}} {}\n", "", level, escape_markdown(words));
}

std::string html_heading(const std::string& words, int level) {
  return fmt::format("<h{0}>{1}</h{0}>\n", level, escape_html(words));
}

std::string linked(const Picture& picture) {
  return picture.file.empty() ? "" : fmt::format("![{}](<{}>)\n", escape_markdown(picture.words), picture.file);
}

/// As an image of its own: its styles stay inside, and scripts in it do not run.
std::string embedded(const Picture& picture) {
  return fmt::format(
      "<img class=\"picture\" alt=\"{}\" src=\"data:image/svg+xml;base64,{}\">\n", escape_html(picture.words),
      base64(picture.svg));
}

const char* ending_of(TableFormat format) {
  switch (format) {
    case TableFormat::Text: return ".txt";
    case TableFormat::Markdown: return ".md";
    case TableFormat::Csv: return ".csv";
    case TableFormat::Json: return ".json";
  }
  return "";
}

}  // namespace

Document& Document::title(const std::string& words) {
  blocks_.emplace_back([words](Kind to, int level) {
    if (to == Kind::Text) return words + "\n";
    return to == Kind::Markdown ? markdown_heading(words, level) : html_heading(words, level);
  });
  return *this;
}

Document& Document::paragraph(const std::string& words, const std::string& kind) {
  if (words.empty()) return *this;
  blocks_.emplace_back([words, kind](Kind to, int) {
    if (to == Kind::Text) return words + "\n";
    if (to == Kind::Markdown) return escape_markdown(words) + "\n";
    return fmt::format("<p{}>{}</p>\n", kind.empty() ? "" : fmt::format(" class=\"{}\"", kind), escape_html(words));
  });
  return *this;
}

Document& Document::list(const std::vector<std::string>& items) {
  if (items.empty()) return *this;
  blocks_.emplace_back([items](Kind to, int) {
    std::string text;
    for (const auto& item : items) {
      if (to == Kind::Text) text += item + "\n";
      if (to == Kind::Markdown) text += fmt::format("- {}\n", escape_markdown(item));
      if (to == Kind::Html) text += fmt::format("<li>{}</li>\n", escape_html(item));
    }
    return to == Kind::Html ? fmt::format("<ul>\n{}</ul>\n", text) : text;
  });
  return *this;
}

Document& Document::table(const std::string& title, const Table& table, const std::string& kind) {
  if (table.rows.empty()) return *this;
  blocks_.emplace_back([title, table, kind](Kind to, int level) {
    if (to == Kind::Text) return (title.empty() ? "" : title + "\n") + text_table(table);
    if (to == Kind::Markdown)
      return (title.empty() ? "" : markdown_heading(title, level + 1) + "\n") + markdown_table(table);
    return html_table(table, title, kind);
  });
  return *this;
}

Document& Document::untitled_table(const std::string& caption, const Table& table, const std::string& kind) {
  if (table.rows.empty()) return *this;
  blocks_.emplace_back([caption, table, kind](Kind to, int) {
    if (to == Kind::Text) return text_table(table);
    return to == Kind::Markdown ? markdown_table(table) : html_table(table, caption, kind);
  });
  return *this;
}

Document& Document::pictures(const std::vector<Picture>& pictures) {
  blocks_.emplace_back([pictures](Kind to, int) {
    std::string text;
    for (const auto& picture : pictures) {
      if (to == Kind::Markdown) text += linked(picture);
      if (to == Kind::Html) text += embedded(picture);
    }
    return text;
  });
  return *this;
}

Document& Document::part(const std::string& title, const Document& inner) {
  blocks_.emplace_back([title, inner](Kind to, int level) {
    const auto body = inner.shown(to, level + 1);
    if (to == Kind::Text) return title + "\n" + body;
    if (to == Kind::Markdown) return markdown_heading(title, level + 1) + "\n" + body;
    return html_heading(title, level + 1) + body;
  });
  return *this;
}

Document& Document::folded(const std::string& title, const Document& inner) {
  if (inner.empty()) return *this;
  blocks_.emplace_back([title, inner](Kind to, int level) {
    if (to == Kind::Text) return std::string();
    const bool page = to == Kind::Html;
    return fmt::format(
        "<details><summary>{}</summary>\n{}{}{}</details>\n", escape_html(title), page ? "" : "\n",
        inner.shown(to, level), page ? "" : "\n");
  });
  return *this;
}

Document& Document::add(const Document& more) {
  blocks_.insert(blocks_.end(), more.blocks_.begin(), more.blocks_.end());
  return *this;
}

std::string Document::shown(Kind kind, int level) const {
  std::string all;
  for (const auto& block : blocks_) {
    const auto text = block(kind, level);
    if (text.empty()) continue;
    if (!all.empty() && kind != Kind::Html) all += "\n";
    all += text;
  }
  return all;
}

std::string Document::text() const {
  return shown(Kind::Text, 0);
}

std::string Document::markdown(int level) const {
  return shown(Kind::Markdown, level);
}

std::string Document::html(int level) const {
  return shown(Kind::Html, level);
}

const std::map<std::string, TableFormat>& table_formats() {
  static const std::map<std::string, TableFormat> formats{
      {"text", TableFormat::Text},
      {"markdown", TableFormat::Markdown},
      {"csv", TableFormat::Csv},
      {"json", TableFormat::Json}};
  return formats;
}

std::string Presentation::as(TableFormat format) const {
  switch (format) {
    case TableFormat::Text: return readable.text();
    case TableFormat::Markdown: return readable.markdown();
    case TableFormat::Csv: return csv_table(flat);
    case TableFormat::Json: return whole.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
  return "";
}

void Presentation::write(const std::filesystem::path& stem, const std::vector<TableFormat>& formats) const {
  for (const auto format : formats) write_own_file(stem.string() + ending_of(format), {as(format)});
}

}  // namespace sgdph::lab::tables
