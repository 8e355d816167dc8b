// Recipes and stored settings, which are TOML: whatever the text, settings within their bounds that come back when they
// are written anew, or a UserError of one line.

#include <sgdph/schema.h>

#include "base/embedded.h"
#include "fuzz.h"
#include "settings/recipe.h"
#include "settings/toml_reader.h"

// The reader asks the library's catalogue what options there are; a small one will do, and needs no LibTorch.
namespace sgdph {
const std::vector<OptimizerInfo>& optimizers() {
  static const auto all = [] {
    OptionInfo rate{"lr", "rate", 0.1, false, false, false, above(0), {}};
    OptionInfo rates{"betas", "weights", std::vector<double>{0.9, 0.99}, false, false, false, fraction(), {}};
    OptionInfo count{"probe_cycle", "steps", int64_t{1}, false, false, false, at_least(1), {}};
    OptionInfo rule{"rule", "which", std::string("mean"), false, false, true, {}, {"mean", "last"}};
    OptionInfo flag{"nesterov", "whether", false, false, false, false, {}, {}};
    OptimizerInfo plain{"sgdm", "SGDM", "", "", "", {}, {rate, flag}};
    plain.traits.baseline = true;
    OptimizerInfo own{"sgd-ph", "SGD-PH", "", "", "", {}, {rate, rates, count, rule}};
    own.traits.measures_curvature = own.traits.has_blocks = true;
    return std::vector<OptimizerInfo>{own, plain};
  }();
  return all;
}
const OptimizerInfo& optimizer_info(const std::string& name) {
  return optimizers().at(name == "sgdm" ? 1 : 0);
}
OptionValues resolve_options(const std::string&, const OptionValues& given) {
  return given;
}
}  // namespace sgdph
namespace sgdph::lab::settings {
const std::vector<EmbeddedFile>& builtin_recipes() {
  static const std::vector<EmbeddedFile> none;
  return none;
}
}  // namespace sgdph::lab::settings

using namespace sgdph::lab;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  refused_in_one_line([&] {
    const auto read = settings::parse_recipe(text, "fuzz");
    const auto combined = settings::combine({{read}, {}});
    const auto written = settings::to_toml(combined);
    const auto back = settings::combine({{settings::parse_recipe(written, "fuzz")}, {}});
    SGDPH_FUZZ_CHECK(settings::to_json(back) == settings::to_json(combined));
  });
  refused_in_one_line([&] { settings::parse_stored_settings(text, "fuzz"); });
  return 0;
}
