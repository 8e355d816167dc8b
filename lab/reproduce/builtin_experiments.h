#pragma once

#include <vector>

namespace sgdph::lab {

/// The files of experiments and experiments/paper, compiled in.
struct BuiltinExperiment {
  const char* name;
  const char* text;
  const char* figures;
};
const std::vector<BuiltinExperiment>& builtin_experiments();

}  // namespace sgdph::lab
