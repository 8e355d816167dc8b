#include "inspect/picture.h"

#include "tables/svg.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

namespace sgdph::lab::inspect {
namespace {

constexpr int64_t kMostChannels = 64;  // drawn
constexpr double kMapSize = 448;
constexpr double kLargestCell = 28;
constexpr double kLeft = 52;
constexpr double kTop = 92;
constexpr double kBottom = 64;
constexpr double kStrip = 18;      // width of the diagonal and of the row sum
constexpr double kStripStep = 64;  // from the map, and from one to the other
constexpr double kLegendWidth = 190;
constexpr double kLeastWidth = 720;  // for the lines above the map
constexpr double kSwatch = 18;

// Half decades below the largest element, and how strong they are drawn; less is left empty.
struct Level {
  double least;
  double opacity;
};
constexpr std::array<Level, 6> kLevels{{{0.3, 1}, {0.1, 0.72}, {0.03, 0.5}, {0.01, 0.33}, {0.003, 0.2}, {0.001, 0.1}}};

// Of middle lightness, so that they stand out on white and on black.
constexpr const char* kBlockStyle =
    ".plus{fill:#e8590c}.minus{fill:#228be6}.frame{fill:none;stroke:var(--soft)}.small{font-size:11px}";

/// Cells by sign and level, each kind one path.
class Cells {
 public:
  explicit Cells(double largest) : largest_(largest) {}

  void add(double x, double y, double width, double height, double value) {
    const auto part = largest_ > 0 ? std::abs(value) / largest_ : 0;
    for (size_t i = 0; i < kLevels.size(); ++i) {
      if (part < kLevels[i].least) continue;
      paths_[{value < 0, i}] += fmt::format("M{:.4g} {:.4g}h{:.4g}v{:.4g}h{:.4g}z", x, y, width, height, -width);
      return;
    }
  }

  std::string paths() const {
    std::string text;
    for (const auto& [kind, path] : paths_) {
      text += fmt::format(
          "<path class=\"{}\" fill-opacity=\"{}\" d=\"{}\"/>\n", kind.first ? "minus" : "plus",
          kLevels[kind.second].opacity, path);
    }
    return text;
  }

 private:
  double largest_;
  std::map<std::pair<bool, size_t>, std::string> paths_;
};

std::string frame_around(double x, double y, double width, double height) {
  return fmt::format(
      "<rect class=\"frame\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n", x, y, width, height);
}

/// Numbers of channels along both sides.
std::string channel_numbers(const std::vector<int64_t>& channels, double cell) {
  size_t step = 1;
  while (static_cast<double>(step) * cell < 24) step *= 2;
  std::string text;
  for (size_t i = 0; i < channels.size(); i += step) {
    const auto at = (static_cast<double>(i) + 0.5) * cell;
    const auto number = std::to_string(channels[i]);
    text += tables::svg::text(kLeft - 6, kTop + at + 4, "end", number, " class=\"small\"");
    text += tables::svg::text(kLeft + at, kTop - 6, "middle", number, " class=\"small\"");
  }
  return text;
}

std::string scale_legend(double x, double largest) {
  auto text = tables::svg::text(x, kTop + 10, "start", fmt::format("1 = {:.3g}, the largest", largest));
  text += tables::svg::text(x + kSwatch / 2, kTop + 32, "middle", "+") +
          tables::svg::text(x + 1.5 * kSwatch + 4, kTop + 32, "middle", "\xe2\x88\x92");
  for (size_t i = 0; i <= kLevels.size(); ++i) {
    const auto y = kTop + 40 + static_cast<double>(i) * (kSwatch + 4);
    for (const auto* kind : {"plus", "minus"}) {
      const auto left = kind[0] == 'p' ? x : x + kSwatch + 4;
      if (i < kLevels.size()) {
        text += fmt::format(
            "<rect class=\"{}\" fill-opacity=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n",
            kind, kLevels[i].opacity, left, y, kSwatch, kSwatch);
      }
      text += frame_around(left, y, kSwatch, kSwatch);
    }
    const auto words = i < kLevels.size() ? fmt::format("from {:g}", kLevels[i].least)
                                          : fmt::format("less than {:g}", kLevels.back().least);
    text += tables::svg::text(x + 2 * kSwatch + 12, y + 13, "start", words);
  }
  return text;
}

std::string heading_of(const BlockView& view) {
  const auto& row = view.row;
  if (!row.note.empty()) return "not drawn: " + row.note;
  if (row.shift_invariant) return "shift-invariant: the row sum is rounding";
  if (!std::isfinite(row.off_diagonal)) return "the diagonal is zero";
  return fmt::format(
      "off-diagonal / diagonal {:.2f} (Frobenius); the row sum has the diagonal's sign on {:.0f} % of the channels",
      row.off_diagonal, 100 * row.row_sum.same_sign);
}

}  // namespace

BlockView::BlockView(const HessianBlock& hessian, const records::BlockRow& found) : row(found) {
  const auto count = std::min<int64_t>(kMostChannels, static_cast<int64_t>(hessian.channels.size()));
  channels.assign(hessian.channels.begin(), hessian.channels.begin() + static_cast<std::ptrdiff_t>(count));
  // Copies, so that the whole block need not stay.
  values = hessian.square().narrow(0, 0, count).narrow(1, 0, count).clone().contiguous();
  diagonal = hessian.diagonal().narrow(0, 0, count).clone();
  row_sum = hessian.row_sum().narrow(0, 0, count).clone();
  row.probes.clear();
}

size_t typical_view(const std::vector<BlockView>& views) {
  std::vector<std::pair<double, size_t>> ratios;
  for (size_t i = 0; i < views.size(); ++i) {
    const auto& row = views[i].row;
    if (!row.shift_invariant && std::isfinite(row.off_diagonal)) ratios.emplace_back(row.off_diagonal, i);
  }
  std::sort(ratios.begin(), ratios.end());
  if (!ratios.empty()) return ratios[ratios.size() / 2].second;
  const auto drawn = std::find_if(views.begin(), views.end(), [](const auto& view) { return view.row.note.empty(); });
  return drawn == views.end() ? 0 : static_cast<size_t>(drawn - views.begin());
}

std::string block_picture(const BlockView& view, const std::string& place) {
  const auto count = static_cast<int64_t>(view.channels.size());
  const auto cell = std::min(kLargestCell, kMapSize / static_cast<double>(count));
  const auto side = cell * static_cast<double>(count);
  const auto strips = kLeft + side + kStripStep - kStrip;
  const auto legend_at = strips + 2 * kStripStep;
  const auto width = std::max(kLeastWidth, legend_at + kLegendWidth);
  const bool drawn = view.row.note.empty();
  const auto height = drawn ? kTop + std::max(side, 210.) + kBottom : kTop;
  const auto title = fmt::format("Hessian block of {}", view.row.block);
  auto picture = tables::svg::open(width, height, title, kBlockStyle);
  picture += tables::svg::text(kLeft, 28, "start", title, " class=\"title\"");
  const auto part =
      drawn && count < view.row.channels ? fmt::format(", {} of {} channels drawn", count, view.row.channels) : "";
  picture += tables::svg::text(kLeft, 48, "start", place + part);
  picture += tables::svg::text(kLeft, 66, "start", heading_of(view));
  if (!drawn) return picture + tables::svg::close();

  const auto largest = view.values.abs().max().item<double>();
  const auto values = view.values.accessor<double, 2>();
  Cells cells(largest);
  for (int64_t i = 0; i < count; ++i) {
    const auto y = kTop + static_cast<double>(i) * cell;
    for (int64_t j = 0; j < count; ++j) cells.add(kLeft + static_cast<double>(j) * cell, y, cell, cell, values[i][j]);
    cells.add(strips, y, kStrip, cell, view.diagonal[i].item<double>());
    cells.add(strips + kStripStep, y, kStrip, cell, view.row_sum[i].item<double>());
  }
  picture += cells.paths();
  picture += frame_around(kLeft, kTop, side, side) + frame_around(strips, kTop, kStrip, side) +
             frame_around(strips + kStripStep, kTop, kStrip, side);
  picture += channel_numbers(view.channels, cell);
  const auto below = kTop + side + 20;
  picture += tables::svg::text(kLeft + side / 2, below, "middle", "channel by channel");
  picture += tables::svg::text(strips + kStrip / 2, below, "middle", "diagonal");
  picture += tables::svg::text(strips + kStripStep + kStrip / 2, below, "middle", "row sum");
  return picture + scale_legend(legend_at, largest) + tables::svg::close();
}

}  // namespace sgdph::lab::inspect
