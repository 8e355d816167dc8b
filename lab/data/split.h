#pragma once

#include <cstdint>

#include "data/datasets.h"

namespace sgdph::lab::data {

/// Images that a split of so many holds out: a number, or below 1 that fraction. A UserError if it is not a whole
/// number, or leaves nothing to train on or nothing to validate with.
int64_t held_out_images(double split, int64_t images);

/// Moves so many training images, chosen by the seed, to the pair's validation part; their order, and that of the rest,
/// stays. The choice depends on the seed and the number of images only.
void hold_out(DatasetPair& pair, int64_t images, uint64_t seed);

}  // namespace sgdph::lab::data
