#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "settings/settings.h"

namespace sgdph::lab::settings {

/// Of anything that is counted: times the batches of an epoch it fits 64 bits.
constexpr double kMost = 1e12;

/// A field under construction, for the list of settings; the flag follows from the key.
class FieldEntry {
 public:
  FieldEntry(Field::Part part, std::string key, Field::Value value, std::string help);

  FieldEntry& also(const std::string& flags) {
    field_.flags = flags + "," + field_.flags;
    return *this;
  }
  FieldEntry& in(const Bound& bound) {
    field_.bound = bound;
    if (field_.kind() == Field::Kind::Whole) field_.bound.high = std::min(bound.high, kMost);
    return *this;
  }
  /// All of the 64 bits.
  FieldEntry& in_full() {
    field_.bound.high = std::numeric_limits<double>::infinity();
    return *this;
  }
  FieldEntry& one_of(std::vector<std::string> choices) {
    field_.choices = std::move(choices);
    return *this;
  }
  FieldEntry& metavar(std::string word) {
    field_.metavar = std::move(word);
    return *this;
  }
  FieldEntry& named_in(std::string table) {
    field_.table = std::move(table);
    return *this;
  }
  FieldEntry& zero_is(std::string text) {
    field_.zero_text = std::move(text);
    return *this;
  }
  /// Sets attributes: `with(&Field::resumable)`.
  template <class... Attributes>
  FieldEntry& with(Attributes... attributes) {
    ((field_.*attributes = true), ...);
    return *this;
  }
  template <class... Attributes>
  FieldEntry& without(Attributes... attributes) {
    ((field_.*attributes = false), ...);
    return *this;
  }
  /// Without it: given on the command line it is refused.
  FieldEntry& idle_because(std::function<std::string(const Settings&)> idle) {
    field_.idle = std::move(idle);
    return *this;
  }
  /// It belongs to these schedules.
  FieldEntry& of_schedules(const std::vector<std::string>& names);
  /// It belongs to --model-ema.
  FieldEntry& of_averages();
  /// Says where and how a run is done, not what it gives.
  FieldEntry& of_the_machine() {
    with(&Field::resumable, &Field::reproduces);
    return without(&Field::result, &Field::identity);
  }
  operator Field() const { return field_; }

 private:
  Field field_;
};

}  // namespace sgdph::lab::settings
