// The list of settings: each stands here once with its option, bounds and help.

#include "settings/settings.h"

namespace sgdph::lab {
namespace {

using Part = Field::Part;

/// Parameters are 32-bit floats.
constexpr double kLargest = 1e38;

/// A field under construction; the flag follows from the key.
class Entry {
 public:
  Entry(Part part, std::string key, Field::Value value, std::string help) {
    field_.part = part;
    field_.flags = "--" + key;
    for (auto& letter : field_.flags) letter = letter == '_' ? '-' : letter;
    field_.key = std::move(key);
    field_.value = value;
    field_.help = std::move(help);
  }
  Entry& also(const std::string& flags) {
    field_.flags = flags + "," + field_.flags;
    return *this;
  }
  Entry& from(double low) {
    field_.low = low;
    return *this;
  }
  Entry& above(double low) {
    field_.low_open = true;
    return from(low);
  }
  Entry& to(double high) {
    field_.high = high;
    return *this;
  }
  Entry& below(double high) {
    field_.high_open = true;
    return to(high);
  }
  Entry& one_of(std::vector<std::string> choices) {
    field_.choices = std::move(choices);
    return *this;
  }
  Entry& changeable() {
    field_.changeable = true;
    return *this;
  }
  operator Field() const { return field_; }

 private:
  Field field_;
};

}  // namespace

const char* to_string(Field::Part part) {
  switch (part) {
    case Part::Data: return "Data";
    case Part::Model: return "Model";
    case Part::Optimizer: return "Optimizer";
    case Part::Schedule: return "Schedule";
    case Part::Training: return "Training";
  }
  return "";
}

std::vector<Field> fields_of(Settings& s) {
  return {
      // Names of data sets, models, norms and optimizers are checked where their tables are.
      Entry(Part::Data, "dataset", &s.dataset, "data set, see 'sgdph list data'"),
      Entry(Part::Data, "data_path", &s.data_path, "folder of the data set; by default where it usually is")
          .changeable(),
      Entry(Part::Data, "augment", &s.augment, "augment training images as is usual for the data set"),
      Entry(Part::Data, "train_limit", &s.train_limit, "train on so many images only, chosen by the seed; 0: all")
          .from(0),
      Entry(Part::Data, "test_limit", &s.test_limit, "test on the first so many images only; 0: all").from(0),
      Entry(
          Part::Data, "skip_damaged", &s.skip_damaged, "leave damaged images out and count them, instead of stopping"),
      Entry(Part::Data, "workers", &s.workers, "threads that prepare batches ahead; by default as the data set needs")
          .also("-j")
          .from(0)
          .to(256)
          .changeable(),

      Entry(Part::Model, "model", &s.model, "network, see 'sgdph list models'"),
      Entry(Part::Model, "form", &s.form, "cifar: 3x3 stem; imagenet: 7x7 stem and pooling; auto: by the image size")
          .one_of({"auto", "cifar", "imagenet"}),
      Entry(Part::Model, "norm", &s.norm, "norm layer, see 'sgdph list norms'"),
      Entry(Part::Model, "width", &s.width, "multiplies the number of channels").above(0).to(16),
      Entry(Part::Model, "kernels", &s.kernels, "fast: our layers with cheap second derivatives; stock: LibTorch's")
          .one_of({"fast", "stock"}),
      Entry(
          Part::Model, "init", &s.init,
          "start from these weights: a checkpoint, or a state dict of Python's torch.save"),

      Entry(Part::Optimizer, "opt", &s.opt, "optimizer, see 'sgdph list optimizers'"),
      Entry(Part::Optimizer, "lr", &s.lr, "learning rate").from(0).to(kLargest),
      Entry(Part::Optimizer, "weight_decay", &s.weight_decay, "weight decay").also("--wd").from(0).to(kLargest),
      Entry(Part::Optimizer, "momentum", &s.momentum, "momentum (sgdm, sgd-ph)").from(0).to(1),
      Entry(Part::Optimizer, "nesterov", &s.nesterov, "Nesterov's momentum (sgdm)"),
      Entry(
          Part::Optimizer, "beta1", &s.beta1,
          "decay of the gradient's average (adam, adamw, adabelief, adahessian, apollo)")
          .from(0)
          .below(1),
      Entry(Part::Optimizer, "beta2", &s.beta2, "decay of the second moment (adam, adamw, adabelief, adahessian)")
          .from(0)
          .below(1),
      Entry(Part::Optimizer, "eps", &s.eps, "added to the divisor (all but sgdm)").from(0),
      Entry(Part::Optimizer, "amsgrad", &s.amsgrad, "keep the largest second moment (adam, adamw, adabelief)"),
      Entry(Part::Optimizer, "lr_so", &s.lr_so, "learning rate of the second-order part, tau_SO (sgd-ph)").above(0),
      Entry(Part::Optimizer, "hessian_momentum", &s.hessian_momentum, "smoothing of the curvature, alpha (sgd-ph)")
          .from(0)
          .to(1),
      Entry(
          Part::Optimizer, "curvature_floor", &s.curvature_floor, "smallest curvature, times the block's mean (sgd-ph)")
          .from(0),
      Entry(Part::Optimizer, "rule", &s.rule, "update rule: the authors' code or Algorithm 1 as printed (sgd-ph)")
          .one_of({"reference", "paper"}),
      Entry(Part::Optimizer, "probe", &s.probe, "vector of the Hessian product (sgd-ph)")
          .one_of({"ones", "rademacher", "hadamard"}),
      Entry(Part::Optimizer, "probe_cycle", &s.probe_cycle, "rows of the Hadamard cycle, a power of two (sgd-ph)")
          .from(1),
      Entry(Part::Optimizer, "refresh", &s.refresh, "which blocks a step refreshes (sgd-ph)")
          .one_of({"cyclic", "all", "joint"}),
      Entry(Part::Optimizer, "refresh_every", &s.refresh_every, "refresh curvature every so many steps (sgd-ph)")
          .from(1),
      Entry(
          Part::Optimizer, "curvature_batch", &s.curvature_batch,
          "part of the batch the curvature is measured from, such as 1/8 (sgd-ph, adahessian)"),
      Entry(
          Part::Optimizer, "curvature_control", &s.curvature_control,
          "for studies: in place of a block's curvature its mean over the block, or one multiplier for all blocks "
          "(sgd-ph)")
          .one_of({"none", "block-mean", "constant"}),
      Entry(
          Part::Optimizer, "block_multiplier", &s.block_multiplier,
          "of every block's step, in place of lr_so / curvature, if curvature_control is constant (sgd-ph)")
          .above(0)
          .to(kLargest),
      Entry(Part::Optimizer, "shift_guard", &s.shift_guard, "make shift-invariant blocks first-order (sgd-ph)"),
      Entry(Part::Optimizer, "blocks", &s.blocks, "blocks by layer type, or every 1-D parameter as published (sgd-ph)")
          .one_of({"module", "published"}),
      Entry(Part::Optimizer, "weight_decouple", &s.weight_decouple, "decoupled weight decay (adabelief)"),
      Entry(Part::Optimizer, "rectify", &s.rectify, "variance rectification (adabelief)"),
      Entry(Part::Optimizer, "hessian_power", &s.hessian_power, "exponent of the curvature (adahessian)").from(0).to(1),
      Entry(Part::Optimizer, "rebound", &s.rebound, "lower bound of the curvature (apollo)")
          .one_of({"constant", "belief"}),
      Entry(Part::Optimizer, "weight_decay_type", &s.weight_decay_type, "kind of weight decay (apollo)")
          .one_of({"L2", "decoupled", "stable"}),
      Entry(Part::Optimizer, "warmup_steps", &s.warmup_steps, "the optimizer's own warm-up, in steps (apollo)").from(0),

      Entry(Part::Schedule, "lr_scheduler", &s.lr_scheduler, "learning rate over time")
          .one_of({"step", "multistep", "cosine", "constant"}),
      Entry(Part::Schedule, "lr_step_size", &s.lr_step_size, "step: times gamma every so many epochs").from(1),
      Entry(Part::Schedule, "lr_gamma", &s.lr_gamma, "factor of step and multistep").above(0),
      Entry(Part::Schedule, "lr_milestones", &s.lr_milestones, "multistep: epochs, with commas between"),
      Entry(Part::Schedule, "lr_min", &s.lr_min, "cosine: learning rate at the end").from(0),
      Entry(Part::Schedule, "lr_warmup_epochs", &s.lr_warmup_epochs, "epochs of linear warm-up; may be a fraction")
          .from(0),
      Entry(
          Part::Schedule, "lr_warmup_decay", &s.lr_warmup_decay,
          "fraction of the learning rate the warm-up starts from")
          .from(0)
          .to(1),

      Entry(Part::Training, "epochs", &s.epochs, "passes over the training set").from(1).changeable(),
      Entry(Part::Training, "batch_size", &s.batch_size, "images per batch").also("-b").from(1),
      Entry(
          Part::Training, "accumulate", &s.accumulate,
          "batches per step of the optimizer; their gradients are averaged")
          .from(1),
      Entry(Part::Training, "label_smoothing", &s.label_smoothing, "label smoothing of the training loss")
          .from(0)
          .to(1),
      Entry(Part::Training, "clip_grad_norm", &s.clip_grad_norm, "largest norm of the gradient; 0: any").from(0),
      Entry(Part::Training, "seed", &s.seed, "of initialisation, order, augmentation and probes").from(0),
      Entry(Part::Training, "device", &s.device, "cpu, cuda or cuda:N"),
      Entry(Part::Training, "threads", &s.threads, "threads of LibTorch; 0: all cores").from(0).to(4096).changeable(),
      Entry(Part::Training, "checkpoint_every", &s.checkpoint_every, "steps between checkpoints; 0: one per epoch")
          .from(0)
          .changeable(),
      Entry(Part::Training, "keep_checkpoints", &s.keep_checkpoints, "newest checkpoints to keep").from(1).changeable(),
      Entry(Part::Training, "tensorboard", &s.tensorboard, "also write event files for TensorBoard to the run's folder")
          .changeable(),
  };
}

}  // namespace sgdph::lab
