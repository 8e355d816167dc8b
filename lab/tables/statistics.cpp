#include "tables/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

namespace sgdph::lab::tables {
namespace {

constexpr double kConfidence = 0.95;
constexpr int kResamples = 2000;

/// The probability that at most `k` of `n` fair coins show heads.
double binomial_tail(int64_t k, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i <= k; ++i) {
    const auto log_choose = std::lgamma(n + 1.) - std::lgamma(i + 1.) - std::lgamma(n - i + 1.);
    sum += std::exp(log_choose - static_cast<double>(n) * std::log(2.));
  }
  return sum;
}

/// The mean over positions of the medians, each weighted by how many positions are nearest to it.
double mean_of_medians(const std::map<int64_t, std::vector<double>>& by_position, int64_t positions) {
  double sum = 0;
  double begin = 0;  // of the stretch of the position under way
  for (auto it = by_position.begin(); it != by_position.end(); ++it) {
    const auto next = std::next(it);
    const double end = next == by_position.end() ? static_cast<double>(positions)
                                                 : static_cast<double>(it->first + next->first + 1) / 2;
    sum += (end - begin) * median(it->second);
    begin = end;
  }
  return sum / static_cast<double>(positions);
}

double cycle_mean(const std::vector<Sample>& samples, int64_t positions, int64_t refresh_every) {
  std::map<int64_t, std::vector<double>> due;
  std::vector<double> plain;
  for (const auto& sample : samples) {
    (sample.position == kNothingDue ? plain : due[sample.position]).push_back(sample.value);
  }
  if (due.empty()) return median(plain);
  const auto mean = mean_of_medians(due, positions);
  const auto share = 1 / static_cast<double>(refresh_every);
  return plain.empty() ? mean : share * mean + (1 - share) * median(plain);
}

int sign_of(double value) {
  return value > 0 ? 1 : value < 0 ? -1 : 0;
}

}  // namespace

Statistic statistic(const std::vector<double>& values) {
  Statistic result;
  result.count = values.size();
  if (values.empty()) return result;
  result.mean = std::accumulate(values.begin(), values.end(), 0.) / static_cast<double>(values.size());
  if (values.size() == 1) return result;
  double sum = 0;
  for (const auto value : values) sum += (value - result.mean) * (value - result.mean);
  result.deviation = std::sqrt(sum / static_cast<double>(values.size() - 1));
  return result;
}

void to_json(nlohmann::json& json, const Statistic& figure) {
  json = {{"mean", figure.mean}, {"std", figure.deviation}, {"n", figure.count}};
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double median_known(const std::vector<double>& values) {
  std::vector<double> known;
  for (const auto value : values) {
    if (std::isfinite(value)) known.push_back(value);
  }
  return known.empty() ? std::numeric_limits<double>::quiet_NaN() : median(known);
}

std::vector<size_t> evenly_spread(size_t all, size_t count) {
  std::vector<size_t> places(std::min(all, count));
  const auto gaps = places.size() - 1;
  for (size_t i = 0; i < places.size(); ++i) places[i] = gaps == 0 ? 0 : (i * (all - 1) + gaps / 2) / gaps;
  return places;
}

Figure median_figure(std::vector<double> values) {
  const auto n = static_cast<int64_t>(values.size());
  Figure figure;
  figure.count = n;
  figure.value = figure.low = figure.high = median(values);
  if (!figure.has_interval()) return figure;
  std::sort(values.begin(), values.end());
  int64_t rank = 0;
  while (rank + 1 < n - 1 - (rank + 1) && 2 * binomial_tail(rank + 1, n) <= 1 - kConfidence) ++rank;
  figure.low = values[static_cast<size_t>(rank)];
  figure.high = values[static_cast<size_t>(n - 1 - rank)];
  return figure;
}

Figure cycle_figure(const std::vector<Sample>& samples, int64_t positions, int64_t refresh_every) {
  Figure figure;
  figure.count = static_cast<int64_t>(samples.size());
  if (samples.empty()) return figure;
  figure.value = figure.low = figure.high = cycle_mean(samples, positions, refresh_every);
  if (!figure.has_interval()) return figure;
  // Steps at which a block is due and those at which none is are drawn apart, so that neither kind goes missing.
  std::vector<Sample> due;
  std::vector<Sample> plain;
  for (const auto& sample : samples) (sample.position == kNothingDue ? plain : due).push_back(sample);
  std::mt19937_64 random(1);  // NOLINT(cert-msc51-cpp): the same interval for the same measurements
  std::vector<double> means;
  for (int i = 0; i < kResamples; ++i) {
    std::vector<Sample> drawn;
    for (const auto* part : {&due, &plain}) {
      for (size_t j = 0; j < part->size(); ++j) drawn.push_back((*part)[random() % part->size()]);
    }
    means.push_back(cycle_mean(drawn, positions, refresh_every));
  }
  std::sort(means.begin(), means.end());
  const auto cut = static_cast<size_t>((1 - kConfidence) / 2 * kResamples);
  figure.low = means[cut];
  figure.high = means[means.size() - 1 - cut];
  return figure;
}

int64_t spread_position(int64_t visit, int64_t positions) {
  // Multiples of the golden ratio fall evenly into the unit interval; a position already had in the cycle is passed
  // over.
  constexpr double kGolden = 0.6180339887498949;
  std::vector<bool> had(static_cast<size_t>(positions));
  const auto turn = visit % positions;
  int64_t position = 0;
  int64_t found = -1;
  for (double point = 0.5; found < turn; point += kGolden) {
    position = static_cast<int64_t>((point - std::floor(point)) * static_cast<double>(positions));
    if (had[static_cast<size_t>(position)]) continue;
    had[static_cast<size_t>(position)] = true;
    ++found;
  }
  return position;
}

RankAgreement rank_agreement(const std::vector<double>& ours, const std::vector<double>& paper) {
  RankAgreement result;
  size_t ordered_ours = 0;
  size_t ordered_paper = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const auto a = sign_of(ours[i] - ours[j]);
      const auto b = sign_of(paper[i] - paper[j]);
      ordered_ours += a != 0 ? 1 : 0;
      ordered_paper += b != 0 ? 1 : 0;
      if (a * b == 0) continue;
      ++result.pairs;
      result.swapped += a != b ? 1 : 0;
    }
  }
  if (result.pairs > 0) {
    const auto difference = static_cast<double>(result.pairs) - 2 * static_cast<double>(result.swapped);
    result.tau = difference / std::sqrt(static_cast<double>(ordered_ours) * static_cast<double>(ordered_paper));
  }
  return result;
}

std::string RankAgreement::words() const {
  if (pairs == 0) return "no ranking to compare";
  if (swapped == 0) return "the paper's ranking";
  const auto part = static_cast<double>(swapped) / static_cast<double>(pairs);
  const auto* how = part <= 0.25   ? "mostly the paper's ranking"
                    : part < 0.5   ? "partly the paper's ranking"
                    : part <= 0.75 ? "not the paper's ranking"
                                   : "nearly the opposite of the paper's ranking";
  return fmt::format("{}: {} of {} pairs swapped", how, swapped, pairs);
}

std::vector<size_t> ranks_of(const std::vector<double>& figures, bool highest_first) {
  std::vector<size_t> ranks;
  for (const auto figure : figures) {
    size_t rank = 1;
    for (const auto other : figures) rank += (highest_first ? other > figure : other < figure) ? 1 : 0;
    ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace sgdph::lab::tables
