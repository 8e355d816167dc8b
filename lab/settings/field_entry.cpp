#include "settings/field_entry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace sgdph::lab::settings {
namespace {

std::string flag_of(const std::string& key) {
  auto flag = "--" + key;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string metavar_of(Field::Kind kind) {
  switch (kind) {
    case Field::Kind::Whole: return "N";
    case Field::Kind::Number: return "NUMBER";
    case Field::Kind::Wholes: return "N,N,...";
    case Field::Kind::Numbers: return "NUMBER,...";
    default: return "NAME";
  }
}

}  // namespace

FieldEntry::FieldEntry(Field::Part part, std::string key, Field::Value value, std::string help) {
  field_.part = part;
  field_.flags = flag_of(key);
  field_.key = std::move(key);
  field_.value = value;
  field_.metavar = metavar_of(field_.kind());
  field_.help = std::move(help);
  field_.of_task = field_.network = field_.evaluates = part == Field::Part::Data || part == Field::Part::Model;
  field_.inspects = part == Field::Part::Model;
}

FieldEntry& FieldEntry::of_schedules(const std::vector<std::string>& names) {
  return idle_because([names](const Settings& s) -> std::string {
    if (std::find(names.begin(), names.end(), s.lr_scheduler) != names.end()) return "";
    return fmt::format(
        "belongs to the schedule{} {}, and --lr-scheduler is {}", names.size() == 1 ? "" : "s",
        fmt::join(names, " and "), s.lr_scheduler);
  });
}

FieldEntry& FieldEntry::of_averages() {
  return idle_because(
      [](const Settings& s) { return s.model_ema ? "" : "there is no average of weights; give --model-ema"; });
}

}  // namespace sgdph::lab::settings
