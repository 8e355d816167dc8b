// What the rooms with LibTorch read, compiled once for all of them. It is no door: each source includes what it uses,
// and make lint, which builds without it, holds them to that.
#pragma once

#include <sgdph/sgdph.h>

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <nlohmann/json.hpp>
