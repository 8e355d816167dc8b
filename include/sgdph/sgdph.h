#pragma once

/// All of sgdph but its layers, which are in <sgdph/nn.h>. A program that needs one optimizer only compiles faster with
/// that header alone.

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
