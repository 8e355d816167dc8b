#pragma once

#include "signs.h"

#include <sgdph/sgd_ph_options.h>
#include <sgdph/sgd_ph_state.h>

#include <limits>
#include <vector>

// A block whose loss does not change when all its channels move together (a bias that feeds softmax or LayerNorm) has a
// row sum that is rounding noise, and dividing by it is meaningless. The guard compares the row sum with a product with
// random signs. What it finds needs evidence, and is looked at again.

namespace sgdph::sgd_ph {

/// A mark is looked at again after so many turns.
constexpr int64_t kTurnsBetweenLooks = 16;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// Whether the guard is on, so that findings count.
bool guard_is_on(const SGDPHOptions& options);
/// Whether it is to look at a block at its next turn; `state` is null if there is none yet.
bool guard_looks(const SGDPHOptions& options, const SGDPHParamState* state);
/// Whether a block with this finding is first-order and out of the rotation, until a look finds it curved.
bool is_waiting(Finding finding);

/// Random signs, not all equal: with equal ones the product would be the row sum again.
at::Tensor mixed_signs_like(const at::Tensor& parameter, ProbePlace place);

/// The type of fewest digits that this gradient's graph passes through (under autocast not the parameter's own):
/// rounding is as coarse as that.
at::ScalarType coarsest_type(const at::Tensor& gradient);

/// What a look at a block found.
struct Look {
  double row_sum = 0;  ///< lengths of vectors: H 1,
  double product = 0;  ///< H times random signs,
  double gradient = 0;
  int64_t channels = 0;
  double gradient_scale = 0;
  at::ScalarType type = at::kFloat;  ///< the coarsest on the way
};
Look look_at(
    const at::Tensor& row_sum, const at::Tensor& random_product, const at::Tensor& gradient, double gradient_scale,
    at::ScalarType type);

/// A row sum below this part of the product with random signs vanishes: 1e3 machine epsilons, 1e-2 at most.
double tolerance(at::ScalarType type);
/// Whether the product is more than rounding. It is not if it is exactly zero (a branch that starts at zero), or if
/// product and gradient are both below the tolerance of the largest gradient (a convolution bias before BatchNorm).
bool has_evidence(const Look& look);

/// Takes a look at a block into its state:
///  * no evidence: nothing is said, and asked again at turns 1, 2, 4, 8, ...;
///  * the row sum vanishes: suspect, looked at again at the next turn; if it does so then too, marked;
///  * a mark is looked at again every 16th turn, and a ratio above ten tolerances takes it back;
///  * else the block is curved, and the guard is done with it.
void take_look(SGDPHParamState& state, const Look& look);
/// A turn at which the gradient carried no graph: a member of the rotation is not measurable for now, and tried again
/// at its next turn.
void miss_look(SGDPHParamState& state);

}  // namespace sgdph::sgd_ph
