#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tables/table.h"

namespace sgdph::lab::tables {

struct Picture {
  std::string words;  ///< for readers who do not see it
  std::string svg;    ///< on a page, which holds it
  std::string file;   ///< in Markdown, which links it; empty: it is not linked
};

/// What is to be read, in its order: written once, shown as plain text, as Markdown or on a page. Text is text: no
/// letter of it is taken for a mark. What is empty is left out: a paragraph without words, a table without rows.
class Document {
 public:
  /// Of the whole.
  Document& title(const std::string& words);
  /// Lines that belong together. `kind`: its class on a page.
  Document& paragraph(const std::string& words, const std::string& kind = "");
  Document& list(const std::vector<std::string>& items);
  /// The title stands above it, on a page as its caption.
  Document& table(const std::string& title, const Table& table, const std::string& kind = "");
  /// The same where the words before it are title enough, so that only a page has a caption.
  Document& untitled_table(const std::string& caption, const Table& table, const std::string& kind = "");
  /// Plain text has none.
  Document& pictures(const std::vector<Picture>& pictures);
  /// A part with a heading of its own.
  Document& part(const std::string& title, const Document& inner);
  /// To be opened by the reader; plain text leaves it out.
  Document& folded(const std::string& title, const Document& inner);
  Document& add(const Document& more);

  bool empty() const { return blocks_.empty(); }

  std::string text() const;
  /// `level`: of the title; parts and tables are one deeper.
  std::string markdown(int level = 1) const;
  std::string html(int level = 2) const;

 private:
  enum class Kind { Text, Markdown, Html };
  /// How a block looks; each ends its last line.
  using Block = std::function<std::string(Kind kind, int level)>;

  std::string shown(Kind kind, int level) const;

  std::vector<Block> blocks_;
};

enum class TableFormat { Text, Markdown, Csv, Json };
/// The formats by the names a command takes.
const std::map<std::string, TableFormat>& table_formats();

/// A result for people, and for programs: one table, or everything there is.
struct Presentation {  // NOLINT(bugprone-exception-escape): the library's json moves without throwing
  Document readable;
  Table flat;
  nlohmann::json whole;

  std::string as(TableFormat format) const;
  /// To STEM.txt, .md, .csv and .json, or some of them.
  void write(
      const std::filesystem::path& stem,
      const std::vector<TableFormat>& formats = {
          TableFormat::Text, TableFormat::Markdown, TableFormat::Csv, TableFormat::Json}) const;
};

}  // namespace sgdph::lab::tables
