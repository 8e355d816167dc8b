#pragma once

#include <sgdph/sgd_ph.h>

#include "sgd_ph/blocks.h"
#include "sgd_ph/refresh_schedule.h"

#include <memory>
#include <string>
#include <vector>

namespace sgdph {

struct SGDPH_LOCAL SGDPH::Impl {
  sgd_ph::Blocks blocks;
  sgd_ph::RefreshSchedule schedule;
  CurvatureFilter curvature_filter;

  static std::unique_ptr<Impl> of(std::vector<sgd_ph::ClassifiedParameter> parameters, bool published) {
    auto impl = std::make_unique<Impl>();
    impl->blocks = sgd_ph::Blocks(std::move(parameters), published);
    return impl;
  }

  struct Notices {
    std::vector<std::string> invariant, not_measurable, absent;  ///< names of blocks found to be so
  };
  /// Takes the measurements into the states, and returns what there is to say about it.
  Notices absorb(SGDPH& self, const Measurements& measurements);
  /// What each slot's momentum is divided by; undefined for those that take the first-order step.
  std::vector<at::Tensor> block_curvatures(SGDPH& self) const;
  /// All of a step that can fail: takes the measurements in and computes `curvatures`. If it does fail, schedule and
  /// states are as before.
  bool prepare_step(SGDPH& self, const Measurements& measurements, std::vector<at::Tensor>& curvatures);
};

}  // namespace sgdph
