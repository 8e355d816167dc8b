#pragma once

#include <string>

#include "report/comparison.h"

namespace sgdph::lab::report {

/// The curves of a metric (index into kMetrics) as a picture for a paper or a slide: mean lines and bands of one
/// deviation, on white. A loss that spans more than a decade has a logarithmic axis. Plain SVG 1.1 with no variables,
/// so that converters to PDF take it.
std::string curve_figure(const Comparison& comparison, size_t metric);

/// Of a comparison with one series, a single run say: its accuracies in training and in tests in one such picture.
std::string accuracy_figure(const Comparison& comparison);

}  // namespace sgdph::lab::report
