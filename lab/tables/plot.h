#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sgdph::lab::tables {

/// How a series is drawn, alike on page and pictures.
struct LineStyle {
  std::string colour;
  std::vector<int> dashes;  ///< lengths of line and gap; none: a full line
};

/// A style for each label, of middle lightness, so that it stands out on white and on black. A colour follows from a
/// name alone: it stays whatever other names there are, unless two would have the same.
class Palette {
 public:
  /// The first label of a name has its colour; any other the next that is free.
  LineStyle style_of(const std::string& label, const std::string& name);

 private:
  size_t free_slot();

  std::map<std::string, LineStyle> given_;
  std::set<std::string> names_;
  std::set<size_t> taken_;
};

/// From values to places. A value beyond an end stands at it.
struct PlotAxis {
  double low = 0;
  double high = 1;
  bool logarithmic = false;
  double from = 0;  ///< the place of `low`
  double to = 1;
  std::vector<double> marks;  ///< where ticks stand; none: at round values
  bool whole = false;         ///< round values are whole numbers
  std::string title;
  std::string unit;

  double at(double value) const;
  std::vector<double> ticks() const;
};

struct PlotPoint {
  double x = 0;
  double y = 0;
  double low = 0;
  double high = 0;
};

/// A value, and where it lies, over the horizontal axis.
struct PlotLine {
  enum class Spread { Band, Bars };

  std::string label;
  LineStyle style;
  Spread spread = Spread::Band;
  std::vector<PlotPoint> points;  ///< those that are not finite are left out
};

/// A style sheet that has what the functions below draw.
extern const char* const kPlotStyle;

/// Both axes, with their ticks and a grid.
std::string plot_frame(const PlotAxis& x, const PlotAxis& y);
std::string plot_line(const PlotLine& line, const PlotAxis& x, const PlotAxis& y);

/// Keys of the lines, as many in a row as fit.
struct Legend {
  std::string svg;
  double bottom = 0;
};
Legend plot_legend(const std::vector<PlotLine>& lines, double left, double right, double top);

}  // namespace sgdph::lab::tables
