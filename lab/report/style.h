#pragma once

#include <vector>

#include "report/task.h"

namespace sgdph::lab {

/// Gives every label one colour and dash pattern in all tasks: an optimizer its own, further series of it others.
void style_series(std::vector<Task>& tasks);

}  // namespace sgdph::lab
