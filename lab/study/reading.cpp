#include "study/reading.h"

#include "optimizers/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace sgdph::lab::study {
namespace {

using Rows = std::vector<const SummaryRow*>;

/// 97.5 % quantile of Student's t.
double student(double freedom) {
  constexpr std::array<double, 10> kFew{12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23};
  if (freedom < 1) return kFew.front();
  if (freedom <= static_cast<double>(kFew.size())) return kFew[static_cast<size_t>(freedom) - 1];
  return freedom < 20 ? 2.2 : freedom < 60 ? 2.09 : 2;
}

bool over_seeds(const SummaryRow& a, const SummaryRow& b) {
  return a.top1.count > 1 && b.top1.count > 1;
}

/// By how many points two means may differ and tell nothing.
double noise(const SummaryRow& a, const SummaryRow& b) {
  if (over_seeds(a, b)) {
    const auto part = [](const SummaryRow& row) {
      return row.top1.deviation * row.top1.deviation / static_cast<double>(row.top1.count);
    };
    const auto both = part(a) + part(b);
    if (both == 0) return 0;
    const auto spread = [&](const SummaryRow& row) {
      return part(row) * part(row) / static_cast<double>(row.top1.count - 1);
    };
    return student(both * both / (spread(a) + spread(b))) * std::sqrt(both);
  }
  const auto images = std::min(a.test_images, b.test_images);
  if (images == 0) return 0;
  const auto variance = [](const SummaryRow& row) { return row.top1.mean / 100 * (1 - row.top1.mean / 100); };
  return 100 * 1.96 * std::sqrt((variance(a) + variance(b)) / static_cast<double>(images));
}

std::string names(const Rows& rows) {
  std::vector<std::string> labels;
  for (const auto* row : rows) labels.push_back(row->label);
  if (labels.size() == 1) return labels.front();
  const auto last = labels.back();
  labels.pop_back();
  return fmt::format("{} and {}", fmt::join(labels, ", "), last);
}

std::string plural(const Rows& rows) {
  return rows.size() == 1 ? "is" : "are";
}

/// Who comes close, and by what that is judged.
std::string closeness(const SummaryRow& first, const Rows& others) {
  Rows close;
  double widest = 0;
  bool seeds = true;
  for (const auto* row : others) {
    const auto margin = noise(first, *row);
    seeds = seeds && over_seeds(first, *row);
    widest = std::max(widest, margin);
    if (is_within_noise(first, *row)) close.push_back(row);
  }
  const auto judged = seeds ? fmt::format("Welch's t-test over {} seeds, 95 %", first.top1.count)
                            : fmt::format(
                                  "one seed cannot tell differences below {:.1f} points with {} test images", widest,
                                  first.test_images);
  if (close.empty()) {
    return fmt::format("{} {} behind it by more than the noise ({})", names(others), plural(others), judged);
  }
  if (close.size() == others.size()) {
    const auto* all = others.size() == 2 ? "both others are" : "all others are";
    return fmt::format("{} within the noise ({})", others.size() == 1 ? names(close) + " is" : all, judged);
  }
  return fmt::format("{} {} within the noise ({}), the others behind", names(close), plural(close), judged);
}

std::string cost_of(const SummaryRow& own) {
  const auto& baseline = optimizers::baseline_optimizer().info;
  const auto together = own.side_by_side > 1 ? fmt::format(", timed with {} runs at once", own.side_by_side) : "";
  if (!own.relative_seconds) {
    return fmt::format(
        "{} took {:.1f} s a run{}, with no finished {} to compare", own.label, own.seconds, together, baseline.label);
  }
  return fmt::format(
      "{} took {:.2f} times {}'s time and {:.2f} times its memory{}", own.label, *own.relative_seconds, baseline.label,
      own.relative_memory.value_or(0), together);
}

/// The place, if it is neither first nor told of already, and the cost of SGD-PH, if there is one row of it.
std::string own_part(const std::vector<SummaryRow>& rows, double best) {
  Rows own;
  for (const auto& row : rows) {
    if (row.optimizer == optimizers::kOwnOptimizer) own.push_back(&row);
  }
  if (own.size() != 1 || own.front()->top1.count == 0) return "";
  const auto gap = best - own.front()->top1.mean;
  const auto place = gap > 0 ? fmt::format("{:.2f} points from the first, ", gap) : std::string();
  return "; " + place + cost_of(*own.front());
}

}  // namespace

bool is_within_noise(const SummaryRow& first, const SummaryRow& row) {
  return first.top1.mean - row.top1.mean <= noise(first, row);
}

std::string reading(const std::vector<SummaryRow>& rows) {
  Rows done;
  Rows missing;
  for (const auto& row : rows) (row.top1.count > 0 ? done : missing).push_back(&row);
  if (done.empty()) return "No run is finished.";
  std::stable_sort(done.begin(), done.end(), [](auto* a, auto* b) { return a->top1.mean > b->top1.mean; });
  const auto& first = *done.front();
  const auto tie = std::find_if(done.begin(), done.end(), [&](auto* row) { return row->top1.mean < first.top1.mean; });
  const Rows leaders(done.begin(), tie);
  const Rows others(tie, done.end());
  auto text = fmt::format("{} {} first with {:.2f} % test accuracy", names(leaders), plural(leaders), first.top1.mean);
  if (done.size() == 1)
    text = fmt::format("{} alone is finished, with {:.2f} % test accuracy", first.label, first.top1.mean);
  if (!others.empty()) text += "; " + closeness(first, others);
  text += own_part(rows, first.top1.mean);
  if (!missing.empty()) text += fmt::format("; without a finished run: {}", names(missing));
  return text + ".";
}

}  // namespace sgdph::lab::study
