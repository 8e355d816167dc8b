#pragma once

#include <string>

#include "report/content.h"

namespace sgdph::lab::report {

/// One HTML file that needs nothing else: tables as they are, curves drawn by its script. A UserError if the program
/// was built without Chart.js.
std::string render_page(const ReportContent& content);

}  // namespace sgdph::lab::report
