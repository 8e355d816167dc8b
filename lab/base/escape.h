#pragma once

#include <string>
#include <string_view>

/// Text as other languages take it.
namespace sgdph::lab {

/// For HTML and SVG, in elements and in attributes between double quotes.
std::string escape_html(std::string_view text);
/// For Markdown, in a table too: one line, nothing in it a mark.
std::string escape_markdown(std::string_view text);
/// For a manual page: hyphens stay hyphens, and no line begins a request.
std::string escape_man(std::string_view text);
/// For a field of CSV: in quotes where it has to be.
std::string escape_csv(std::string_view text);
/// JSON for a script in a page: the letters that HTML could take for its own stand in strings only, where JSON has
/// another spelling for them.
std::string escape_script(std::string_view json);

bool has_control_character(std::string_view text);
/// A message, which is one line: with escapes for control characters, which could write to the terminal what they like.
std::string one_line(std::string_view text);
/// The same of something within a message, cut to a length that it bears.
std::string printable(std::string_view text);

/// A name for files and links: small letters, digits and dots with hyphens between, at most 100; `otherwise` if nothing
/// is left.
std::string slug_of(std::string_view text, const std::string& otherwise);

std::string base64(std::string_view bytes);

bool is_utf8(const std::string& text);
/// With U+FFFD for what is no UTF-8.
std::string as_utf8(const std::string& text);

}  // namespace sgdph::lab
