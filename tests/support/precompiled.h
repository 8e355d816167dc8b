#pragma once

#include <sgdph/sgdph.h>

#include <gtest/gtest.h>
#include <torch/torch.h>
