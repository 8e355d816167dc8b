#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "cost/cost.h"
#include "cost/engine_run.h"
#include "tables/document.h"

namespace sgdph::lab::cost {

/// What lies between two ranks.
struct Link {
  double gigabits = 10;          ///< a second
  double hop_microseconds = 25;  ///< until a message arrives, however short
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Link, gigabits, hop_microseconds)

/// A step of one rank, and what it has to send.
struct StepFacts {
  double seconds = 0;          ///< first-order
  double product_seconds = 0;  ///< of a Hessian product, the mean over blocks
  int64_t batch_size = 0;
  int64_t parameters = 0;
  int64_t blocks = 0;
  int64_t block_values = 0;  ///< of all blocks
  int64_t epoch_images = 0;
  int64_t bucket_bytes = 8 << 20;  ///< gradients travel in buckets

  double gradient_bytes() const;
  int64_t buckets() const;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    StepFacts, seconds, product_seconds, batch_size, parameters, blocks, block_values, epoch_images, bucket_bytes)

/// What so many ranks would do by the model; times in seconds.
struct ScaleRow {
  int64_t ranks = 1;
  double transfer = 0;    ///< of the gradients round a ring, by bandwidth alone
  double hops = 0;        ///< of their buckets
  double small_ring = 0;  ///< a collective of a few values, as the curvature's
  double small_tree = 0;
  double first_order = 0;        ///< gradients travel during the backward pass
  double sgd_ph_after = 0;       ///< one block a step; gradients travel when all is computed
  double sgd_ph = 0;             ///< the same; they travel during backward pass and product
  double spread = 0;             ///< likewise, a block for each rank
  double images_per_second = 0;  ///< of the last
  double efficiency = 0;         ///< of the last: images a second for each rank, relative to one rank alone
  int64_t spread_blocks = 1;     ///< a step, at most
  int64_t spread_period = 0;     ///< steps until a block's next turn
  double refreshes = 0;          ///< of a block in an epoch, one block a step
  double spread_refreshes = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    ScaleRow, ranks, transfer, hops, small_ring, small_tree, first_order, sgd_ph_after, sgd_ph, spread,
    images_per_second, efficiency, spread_blocks, spread_period, refreshes, spread_refreshes)

/// The model. Ring: 2 (W-1)/W of the bytes, 2 (W-1) hops for each message. Forward is a third of a step and backward
/// two; a block's product costs what lies behind it, falling evenly from the first block to the last.
ScaleRow scale_row(const StepFacts& facts, const Link& link, int64_t ranks);

struct ScaleReport : records::MachineFacts {
  std::string kind = "model";  ///< not a measurement
  std::string model, form;
  bool measured = true;  ///< the step was, here
  Link link;
  StepFacts step;
  std::vector<ScaleRow> rows;
  std::vector<std::string> remarks;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    ScaleReport, kind, model, form, measured, cpu, libtorch, version, started, threads, link, step, rows, remarks)

struct ScaleOptions {
  Workload workload;
  Link link;
  std::vector<int64_t> ranks;
  int64_t bucket_bytes = 8 << 20;
  int64_t epoch_images = 0;  ///< 0: those of the form's data set
  double step_seconds = 0;   ///< 0: measured here
  double product_seconds = 0;
  TimeLimit limit;
  int64_t threads = 1;
};

/// A UserError for what cannot be; measures a step in a process of its own, with progress on standard error. Without
/// rows if it was interrupted.
ScaleReport model_scale(const ScaleOptions& options);

/// Where it stops scaling, in sentences.
std::vector<std::string> remarks_of(const std::vector<ScaleRow>& rows);

tables::Presentation present(const ScaleReport& report);

}  // namespace sgdph::lab::cost
