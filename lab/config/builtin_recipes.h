#pragma once

#include <vector>

namespace sgdph::lab {

/// The files of lab/recipes, compiled in.
struct BuiltinRecipe {
  const char* name;
  const char* text;
};
const std::vector<BuiltinRecipe>& builtin_recipes();

}  // namespace sgdph::lab
