#pragma once

#include <string>

/// Pieces of pictures as SVG.
namespace sgdph::lab::tables::svg {

enum class Colours {
  Reader,  ///< follow the reader's choice of light or dark
  Print,   ///< on white, plain SVG 1.1 with no variables, so that converters to PDF take it
};

/// Opens a picture with a title for readers who do not see it. The classes title, paper, grid and axis are there, and
/// for the reader's colours --ink, --soft and --paper; `style` adds to them.
std::string open(
    double width, double height, const std::string& title, const std::string& style, Colours colours = Colours::Reader);
std::string close();

/// `anchor`: start, middle or end.
std::string text(double x, double y, const char* anchor, const std::string& words, const std::string& attributes = "");
std::string line(const char* kind, double x1, double y1, double x2, double y2, const std::string& attributes = "");

}  // namespace sgdph::lab::tables::svg
