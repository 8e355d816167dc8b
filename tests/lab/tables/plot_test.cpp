#include "tables/plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace sgdph::lab::tables::plot_test {
namespace {

PlotAxis axis_of(double low, double high, bool logarithmic = false) {
  PlotAxis axis;
  axis.low = low;
  axis.high = high;
  axis.logarithmic = logarithmic;
  axis.from = 0;
  axis.to = 100;
  return axis;
}

TEST(PlotAxis, PutsValuesInTheirPlacesAndThoseBeyondAtItsEnds) {
  EXPECT_DOUBLE_EQ(axis_of(10, 20).at(15), 50);
  EXPECT_DOUBLE_EQ(axis_of(1, 100, true).at(10), 50);
  EXPECT_DOUBLE_EQ(axis_of(1, 100, true).at(-1), 0);
  EXPECT_DOUBLE_EQ(axis_of(10, 20).at(std::numeric_limits<double>::infinity()), 100);
}

TEST(PlotAxis, TicksStandAtRoundValues) {
  EXPECT_EQ(axis_of(0, 10).ticks(), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(axis_of(0.5, 50, true).ticks(), (std::vector<double>{0.5, 1, 2, 5, 10, 20, 50}));
  EXPECT_EQ(axis_of(0.9, 10, true).ticks(), (std::vector<double>{1, 1.5, 2, 3, 5, 7, 10}));
  EXPECT_EQ(axis_of(1, 1e4, true).ticks(), (std::vector<double>{1, 10, 100, 1000, 1e4}));
  // Less than a decade has no powers of ten to stand at.
  EXPECT_EQ(axis_of(0.95, 4.2, true).ticks(), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_GE(axis_of(0.95, 1.3, true).ticks().size(), 3U);
  auto epochs = axis_of(1, 3);
  epochs.whole = true;
  EXPECT_EQ(epochs.ticks(), (std::vector<double>{1, 2, 3}));
  epochs.marks = {1, 3};
  EXPECT_EQ(epochs.ticks(), epochs.marks);
}

TEST(Palette, AColourFollowsFromTheNameWhateverOthersThereAre) {
  Palette all;
  Palette few;
  const auto red = all.style_of("SGD-PH", "sgd-ph").colour;
  for (const auto* name : {"sgdm", "adam", "adamw", "adabelief", "adahessian", "apollo"}) all.style_of(name, name);
  EXPECT_EQ(few.style_of("Adam", "adam").colour, all.style_of("adam", "adam").colour);
  EXPECT_EQ(few.style_of("SGD-PH", "sgd-ph").colour, red);
  EXPECT_EQ(red, "#e03131");
  EXPECT_EQ(all.style_of("sgdm", "sgdm").colour, "#868e96");
}

TEST(Palette, LabelsOfOneNameAndManyNamesAreToldApart) {
  Palette palette;
  std::set<std::pair<std::string, std::vector<int>>> seen;
  for (int i = 0; i < 40; ++i) {
    const auto label = "SGD-PH, " + std::to_string(i);
    const auto style = palette.style_of(label, "sgd-ph");
    EXPECT_TRUE(seen.insert({style.colour, style.dashes}).second) << label;
    EXPECT_EQ(palette.style_of(label, "sgd-ph").colour, style.colour);
  }
  const auto other = palette.style_of("SGDM", "sgdm");
  EXPECT_TRUE(other.dashes.empty());
  EXPECT_TRUE(seen.insert({other.colour, other.dashes}).second);
}

TEST(Plot, ALineHasABandOrBarsAndAPointIsADot) {
  const auto x = axis_of(0, 10);
  const auto y = axis_of(0, 10);
  PlotLine line{"a & b", {"#123456", {7, 4}}, PlotLine::Spread::Band, {{0, 5, 4, 6}, {10, 5, 5, 5}, {5, NAN, 0, 0}}};
  const auto band = plot_line(line, x, y);
  EXPECT_EQ(
      band.find("<polygon class=\"band\" fill=\"#123456\" points=\"0.0,60.0 100.0,50.0 100.0,50.0 0.0,40.0\"/>"), 0U)
      << band;
  EXPECT_NE(
      band.find("stroke-dasharray=\"7 4\" points=\"0.0,50.0 100.0,50.0\"><title>a &amp; b</title>"), std::string::npos)
      << band;
  EXPECT_EQ(band.find("<circle"), std::string::npos);
  line.spread = PlotLine::Spread::Bars;
  const auto bars = plot_line(line, x, y);
  EXPECT_EQ(bars.find("<polygon"), std::string::npos);
  EXPECT_NE(bars.find("<line class=\"interval\" x1=\"0.0\" y1=\"40.0\" x2=\"0.0\" y2=\"60.0\""), std::string::npos)
      << bars;
  EXPECT_NE(bars.find("<title>a &amp; b: 5</title>"), std::string::npos) << bars;
  line.points.resize(1);
  line.spread = PlotLine::Spread::Band;
  EXPECT_EQ(plot_line(line, x, y).find("<polyline"), std::string::npos);
  EXPECT_NE(plot_line(line, x, y).find("<circle"), std::string::npos);
  line.points.clear();
  EXPECT_EQ(plot_line(line, x, y), "");
}

TEST(Plot, TheLegendGoesOnInTheNextRow) {
  const PlotLine line{"a label of some length", {"#123456", {}}, PlotLine::Spread::Band, {}};
  EXPECT_DOUBLE_EQ(plot_legend({line, line}, 0, 1000, 100).bottom, 120);
  EXPECT_DOUBLE_EQ(plot_legend({line, line}, 0, 200, 100).bottom, 140);
}

}  // namespace
}  // namespace sgdph::lab::tables::plot_test
