// The list of settings: each stands here once with its option, bounds and help.

#include "settings/settings.h"

#include "settings/field_entry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace sgdph::lab::settings {
namespace {

using Part = Field::Part;
using Entry = FieldEntry;

/// Parameters are 32-bit floats.
constexpr double kLargest = 1e38;

Field option_field(const OptionInfo& option, optimizers::OptimizerValues& values) {
  Field field = Entry(Part::Optimizer, option.name, Field::OptionSlot{&values, option.value}, option.help);
  // As torchvision's script has it.
  if (option.name == "weight_decay") field.flags = "--wd," + field.flags;
  field.bound = option.bound;
  if (field.kind() == Field::Kind::Number) field.bound.high = std::min(field.bound.high, kLargest);
  field.choices = option.choices;
  return field;
}

/// The help of an option that several optimizers have: what each means by it, and whose it is unless it is everybody's.
std::string joint_help(const std::string& name) {
  std::vector<std::pair<std::string, std::vector<std::string>>> meanings;
  size_t owners = 0;
  for (const auto& entry : optimizers::optimizer_entries()) {
    const auto* option = entry.option(name);
    if (option == nullptr) continue;
    ++owners;
    auto place = std::find_if(
        meanings.begin(), meanings.end(), [&](const auto& meaning) { return meaning.first == option->help; });
    if (place == meanings.end()) place = meanings.insert(place, {option->help, {}});
    place->second.push_back(entry.info.name);
  }
  if (meanings.size() == 1 && owners == optimizers::optimizer_entries().size()) return meanings.front().first;
  std::string text;
  for (const auto& [help, names] : meanings) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", help, fmt::join(names, ", "));
  }
  return text;
}

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

namespace {

std::vector<Field> fields_before_options(Settings& s) {
  return {
      // Names of data sets, models, norms and optimizers are checked where their tables are.
      Entry(Part::Data, "dataset", &s.dataset, "data set, see 'sgdph list data'")
          .named_in("data")
          .with(&Field::inspects),
      Entry(Part::Data, "data_path", &s.data_path, "folder of the data set; by default where it usually is")
          .metavar("DIR")
          .of_the_machine()
          .with(&Field::inspects, &Field::follows_dataset)
          .without(&Field::reproduces),
      Entry(Part::Data, "augment", &s.augment, "augment training images as is usual for the data set")
          .with(&Field::inspects),
      Entry(Part::Data, "train_limit", &s.train_limit, "train on so many images only, chosen by the seed; 0: all")
          .in(at_least(0))
          .zero_is("all")
          .with(&Field::inspects),
      Entry(Part::Data, "test_limit", &s.test_limit, "test on the first so many images only; 0: all")
          .in(at_least(0))
          .zero_is("all"),
      Entry(
          Part::Data, "val_split", &s.val_split,
          "validation images held out of the training set: a number, or below 1 that fraction; curves and best weights "
          "go by them, and the test set is read at the end only; 0: none")
          .in(at_least(0))
          .zero_is("none")
          .without(&Field::evaluates),
      Entry(Part::Data, "split_seed", &s.split_seed, "of the choice of validation images, whatever --seed is")
          .in(at_least(0))
          .idle_because([](const Settings& s) {
            return s.val_split == 0 ? "chooses validation images, and there are none; give --val-split" : "";
          })
          .without(&Field::evaluates),
      Entry(Part::Data, "skip_damaged", &s.skip_damaged, "leave damaged images out and count them, instead of stopping")
          .with(&Field::inspects),
      Entry(Part::Data, "workers", &s.workers, "threads that prepare batches ahead; by default as the data set needs")
          .also("-j")
          .in(between(0, 256))
          .of_the_machine()
          .with(&Field::cost, &Field::follows_dataset),

      Entry(Part::Model, "model", &s.model, "network, see 'sgdph list models'").named_in("models"),
      Entry(Part::Model, "form", &s.form, "cifar: 3x3 stem; imagenet: 7x7 stem and pooling; auto: by the image size")
          .one_of({"auto", "cifar", "imagenet"}),
      Entry(Part::Model, "norm", &s.norm, "norm layer, see 'sgdph list norms'").named_in("norms"),
      Entry(Part::Model, "width", &s.width, "multiplies the number of channels").in({0, 16, true, false}),
      Entry(
          Part::Model, "stem_stride", &s.stem_stride,
          "stride of a ResNet's first convolution; 2 makes the rest work on a quarter of the pixels; 0: as the form "
          "has it")
          .in(between(0, 4))
          .zero_is("as the form has it")
          .idle_because([](const Settings& s) {
            return s.model.rfind("resnet", 0) == 0 ? "" : s.model + " has no stem; use it with a ResNet";
          }),
      Entry(Part::Model, "kernels", &s.kernels, "fast: our layers with cheap second derivatives; stock: LibTorch's")
          .one_of({"fast", "stock"})
          .without(&Field::of_task),
      Entry(
          Part::Model, "init", &s.init,
          "start from these weights: a checkpoint, or a state dict of Python's torch.save")
          .metavar("FILE"),

      Entry(Part::Optimizer, "opt", &s.opt, "optimizer, see 'sgdph list optimizers'")
          .named_in("optimizers")
          .with(&Field::series_name),
  };
}

std::vector<Field> fields_after_options(Settings& s) {
  return {
      Entry(
          Part::Optimizer, "norm_weight_decay", &s.norm_weight_decay,
          "weight decay of norm layers' gains, and of their shifts unless --bias-weight-decay says otherwise; by "
          "default as of the rest")
          .in(at_least(0))
          .idle_because([](const Settings& s) {
            return s.norm == "none" ? "the network has no norm layers; give another --norm" : "";
          }),
      Entry(
          Part::Optimizer, "bias_weight_decay", &s.bias_weight_decay,
          "weight decay of every parameter called bias, norm layers' included; by default as of the rest")
          .in(at_least(0)),

      Entry(Part::Schedule, "lr_scheduler", &s.lr_scheduler, "learning rate over time")
          .one_of({"step", "multistep", "cosine", "linear", "constant"}),
      Entry(Part::Schedule, "lr_step_size", &s.lr_step_size, "step: times gamma every so many epochs")
          .in(at_least(1))
          .of_schedules({"step"}),
      Entry(Part::Schedule, "lr_gamma", &s.lr_gamma, "factor of step and multistep")
          .in(above(0))
          .of_schedules({"step", "multistep"}),
      Entry(Part::Schedule, "lr_milestones", &s.lr_milestones, "multistep: epochs, with commas between")
          .in(between(0, kMost))
          .of_schedules({"multistep"}),
      Entry(Part::Schedule, "lr_min", &s.lr_min, "cosine and linear: learning rate at the end")
          .in(at_least(0))
          .of_schedules({"cosine", "linear"}),
      Entry(Part::Schedule, "lr_warmup_epochs", &s.lr_warmup_epochs, "epochs of linear warm-up; may be a fraction")
          .in(at_least(0)),
      Entry(
          Part::Schedule, "lr_warmup_decay", &s.lr_warmup_decay,
          "fraction of the learning rate the warm-up starts from")
          .in(between(0, 1))
          .idle_because([](const Settings& s) {
            return s.lr_warmup_epochs == 0 ? "there is no warm-up; give --lr-warmup-epochs" : "";
          }),

      Entry(Part::Training, "epochs", &s.epochs, "passes over the training set")
          .in(at_least(1))
          .with(&Field::resumable, &Field::of_task),
      Entry(
          Part::Training, "eval_every", &s.eval_every,
          "test within epochs too: every so many steps, or below 1 that fraction of an epoch; 0: after epochs only")
          .in(between(0, kMost))
          .of_the_machine()
          .with(&Field::in_step)
          .without(&Field::reproduces),
      Entry(
          Part::Training, "eval_limit", &s.eval_limit,
          "images of the tests within epochs, the first so many; 0: all of the test set")
          .in(at_least(0))
          .idle_because([](const Settings& s) {
            return s.eval_every == 0 ? "there are no tests within epochs; give --eval-every" : "";
          })
          .zero_is("all")
          .of_the_machine()
          .with(&Field::in_step)
          .without(&Field::reproduces),
      Entry(Part::Training, "batch_size", &s.batch_size, "images per batch")
          .also("-b")
          .in(at_least(1))
          .with(&Field::network, &Field::evaluates, &Field::inspects),
      Entry(
          Part::Training, "accumulate", &s.accumulate,
          "batches per step of the optimizer; their gradients are averaged")
          .in(at_least(1)),
      Entry(Part::Training, "label_smoothing", &s.label_smoothing, "label smoothing of the training loss")
          .in(between(0, 1))
          .with(&Field::inspects),
      Entry(Part::Training, "clip_grad_norm", &s.clip_grad_norm, "largest norm of the gradient; 0: any")
          .in(at_least(0)),
      Entry(
          Part::Training, "model_ema", &s.model_ema,
          "keep an exponential moving average of the weights as well, and measure it beside them"),
      Entry(Part::Training, "model_ema_steps", &s.model_ema_steps, "steps between two updates of the average")
          .in(at_least(1))
          .of_averages(),
      Entry(
          Part::Training, "model_ema_decay", &s.model_ema_decay,
          "how slowly the average forgets, for a run of one epoch and single images: scaled by batch size, steps and "
          "epochs")
          .in(between(0, 1))
          .of_averages(),
      Entry(
          Part::Training, "amp", &s.amp,
          "bf16: autocast to bfloat16, in training and tests; weights and the optimizer stay in 32 bits")
          .one_of({"none", "bf16"})
          .with(&Field::network, &Field::evaluates),
      Entry(Part::Training, "seed", &s.seed, "of initialisation, order, augmentation and probes")
          .in(at_least(0))
          .in_full()
          .with(&Field::inspects, &Field::series_name)
          .without(&Field::identity),
      Entry(Part::Training, "device", &s.device, "cpu, cuda or cuda:N")
          .with(&Field::network, &Field::evaluates, &Field::inspects, &Field::reproduces, &Field::per_rank)
          .without(&Field::identity),
      Entry(
          Part::Training, "threads", &s.threads, "threads of LibTorch; 0: as many as it has cores, or OMP_NUM_THREADS")
          .in(between(0, 4096))
          .of_the_machine()
          .with(&Field::cost, &Field::evaluates, &Field::inspects),
      Entry(
          Part::Training, "side_by_side", &s.side_by_side,
          "runs that share the machine with this one, itself counted: marks its times")
          .in(between(1, 4096))
          .of_the_machine()
          .without(&Field::reproduces),
      Entry(Part::Training, "checkpoint_every", &s.checkpoint_every, "steps between checkpoints; 0: one per epoch")
          .in(at_least(0))
          .of_the_machine(),
      Entry(
          Part::Training, "checkpoint_minutes", &s.checkpoint_minutes,
          "also write a checkpoint when so many minutes have passed since the last one; 0: not by time")
          .in(at_least(0))
          .of_the_machine(),
      Entry(Part::Training, "keep_checkpoints", &s.keep_checkpoints, "newest checkpoints to keep")
          .in(at_least(1))
          .of_the_machine(),
      Entry(Part::Training, "tensorboard", &s.tensorboard, "also write event files for TensorBoard to the run's folder")
          .of_the_machine(),
      Entry(
          Part::Training, "ranks", &s.ranks,
          "processes that share the run, as their launcher says; each has batches of its own: docs/many-machines.md")
          .in(between(1, 1 << 20))
          .of_the_machine()
          .without(&Field::reproduces),
      Entry(
          Part::Training, "dist_timeout", &s.dist_timeout,
          "seconds until ranks that do not come, or do not answer any more, are given up and all end with code 75")
          .in({1, 86400})
          .of_the_machine()
          .with(&Field::evaluates),
  };
}

std::vector<Field> joined(Settings& settings, const std::vector<Field>& options) {
  auto fields = fields_before_options(settings);
  fields.insert(fields.end(), options.begin(), options.end());
  const auto rest = fields_after_options(settings);
  fields.insert(fields.end(), rest.begin(), rest.end());
  return fields;
}

}  // namespace

std::vector<Field> fields_of(Settings& settings) {
  std::vector<Field> options;
  for (const auto& option : optimizers::optimizer_entry(settings.opt).options) {
    options.push_back(option_field(option, settings.optimizer));
  }
  return joined(settings, options);
}

std::vector<Field> fields_of_all_optimizers(Settings& settings) {
  std::vector<Field> options;
  for (const auto& entry : optimizers::optimizer_entries()) {
    for (const auto& option : entry.options) {
      auto known =
          std::find_if(options.begin(), options.end(), [&](const Field& field) { return field.key == option.name; });
      if (known == options.end()) {
        known = options.insert(known, option_field(option, settings.optimizer));
        known->help = joint_help(option.name);
        known->bound = {};
        continue;
      }
      for (const auto& choice : option.choices) {
        auto& choices = known->choices;
        if (std::find(choices.begin(), choices.end(), choice) == choices.end()) choices.push_back(choice);
      }
    }
  }
  return joined(settings, options);
}

}  // namespace sgdph::lab::settings
