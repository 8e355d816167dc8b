#pragma once

#include <filesystem>
#include <string>

#include "report/content.h"

namespace sgdph::lab::report {

/// The same as text: tables, and links to the figures if they were written. `figures` is their folder as seen from the
/// text; empty: none.
std::string render_markdown(const ReportContent& content, const std::filesystem::path& figures);

}  // namespace sgdph::lab::report
