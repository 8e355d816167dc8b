#pragma once

/// All of sgdph but its layers, which are in <sgdph/nn.h>. A program that needs one optimizer only compiles faster with
/// that header alone.
///
/// Threads: an optimizer, a scheduler and the graph of a loss belong to one thread at a time; different ones may be
/// used at once. `install_fast_operators` is for before other threads use LibTorch.

#include <sgdph/adabelief.h>
#include <sgdph/adahessian.h>
#include <sgdph/apollo.h>
#include <sgdph/catalogue.h>
#include <sgdph/fast_operators.h>
#include <sgdph/frozen_statistics.h>
#include <sgdph/hessian.h>
#include <sgdph/lion.h>
#include <sgdph/schedulers.h>
#include <sgdph/sgd_ph.h>
#include <sgdph/version.h>
#include <sgdph/weight_norm.h>
