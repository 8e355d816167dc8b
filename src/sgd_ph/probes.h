#pragma once

#include "signs.h"

#include <sgdph/sgd_ph_options.h>
#include <sgdph/sgd_ph_state.h>

namespace sgdph::sgd_ph {

/// Everything probes differ in. A new probe is an enumerator and a row in probes.cpp.
struct ProbeKind {
  Probe probe;
  double default_floor;  ///< of `curvature_floor`, when that is unset
  bool averages_signed;  ///< false: absolute values are averaged, as published
  bool starts_at_zero;   ///< an average that begins at zero, which the published bias correction and start belong to
  bool may_join;         ///< one product may serve all blocks: their couplings cancel on average
  bool guarded;          ///< the estimate of a shift-invariant block is rounding noise, so that the guard has to look
  /// The vector z of a block's product.
  at::Tensor (*draw)(const at::Tensor& parameter, const ProbePlace& place, const SGDPHOptions& options);
  /// Takes a new estimate into the state, whose `refreshes` counts it already; see `absorb_estimate`.
  void (*absorb)(SGDPHParamState& state, const at::Tensor& estimate, const SGDPHOptions& options, double pace);
};

const ProbeKind& probe_kind(Probe probe);

}  // namespace sgdph::sgd_ph
