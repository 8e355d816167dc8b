#pragma once

#include <string>
#include <vector>

#include "base/embedded.h"
#include "report/comparison.h"
#include "report/sections.h"

namespace sgdph::lab::report {

/// A writer's notes on a page: Markdown (CommonMark). HTML in them is text, and a picture is a link to it, since a page
/// takes nothing from outside. Headings stand below those of the page's parts.
std::string notes_html(const std::string& text);

/// The curves as JSON for the page's script, safe inside a script element: no letter of it can end that. Figures have
/// five digits.
std::string page_data(const std::vector<Comparison>& comparisons);

/// The files of lab/report/page, compiled in, and Chart.js as chart.js unless there was none when the program was
/// built.
const std::vector<EmbeddedFile>& page_files();

/// One HTML file that needs nothing else: tables as they are, curves drawn by its script. A UserError if the program
/// was built without Chart.js.
std::string render_page(const ReportContent& content);

}  // namespace sgdph::lab::report
