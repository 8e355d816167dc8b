#pragma once

#include <string>

namespace sgdph::lab {

/// A writer's notes on a page: paragraphs, lists ("- "), headings ("## "), `code` and **strong** of Markdown; all else
/// is text.
std::string notes_html(const std::string& text);

}  // namespace sgdph::lab
