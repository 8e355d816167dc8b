#include "report/markdown.h"

#include "report/report.h"
#include "report/sections.h"

namespace sgdph::lab::report {

std::string render_markdown(const ReportContent& content, const std::filesystem::path& figures) {
  tables::Document body;
  for (const auto& comparison : content.comparisons) {
    std::vector<tables::Picture> pictures;
    for (size_t i = 0; i < kMetrics.size() && !figures.empty(); ++i) {
      pictures.push_back({kMetrics[i].title, "", (figures / figure_name(comparison, i)).generic_string()});
    }
    body.part(comparison.title, results_of(comparison).pictures(pictures).add(details_of(comparison)));
  }
  for (const auto& section : sections_of(content, figures)) body.part(section.title, section.body);
  const auto head = tables::Document().title(content.title).paragraph(content.written).markdown() + "\n";
  return head + (content.notes.empty() ? "" : content.notes + "\n") + body.markdown();
}

}  // namespace sgdph::lab::report
