#pragma once

#include <string>

namespace sgdph::lab::report {

/// A writer's notes on a page: Markdown (CommonMark). HTML in them is text, and a picture is a link to it, since a page
/// takes nothing from outside. Headings stand below those of the page's parts.
std::string notes_html(const std::string& text);

}  // namespace sgdph::lab::report
