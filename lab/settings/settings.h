#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "optimizers/options.h"

namespace sgdph::lab::settings {

/// Everything a run depends on. An unset optional, and an option of the optimizer that is not named, takes the default
/// of data set, machine or optimizer; `resolve` fills it in, so that a stored run says all.
struct Settings {
  std::string dataset = "fashion-mnist";
  std::string data_path;
  bool augment = true;
  int64_t train_limit = 0;
  int64_t test_limit = 0;
  double val_split = 0;
  int64_t split_seed = 1;
  bool skip_damaged = false;
  std::optional<int64_t> workers;

  std::string model = "resnet8";
  std::string form = "auto";
  std::string norm = "batch";
  double width = 1;
  int64_t stem_stride = 0;
  std::string kernels = "fast";
  std::string init;

  std::string opt = optimizers::kOwnOptimizer;
  optimizers::OptimizerValues optimizer;
  std::optional<double> norm_weight_decay;
  std::optional<double> bias_weight_decay;

  std::string lr_scheduler = "step";
  int64_t lr_step_size = 30;
  double lr_gamma = 0.1;
  std::vector<int64_t> lr_milestones;
  double lr_min = 0;
  double lr_warmup_epochs = 0;
  double lr_warmup_decay = 0.01;

  int64_t epochs = 10;
  int64_t batch_size = 128;
  double eval_every = 0;
  int64_t eval_limit = 0;
  int64_t accumulate = 1;
  double label_smoothing = 0;
  double clip_grad_norm = 0;
  bool model_ema = false;
  int64_t model_ema_steps = 32;
  double model_ema_decay = 0.99998;
  std::string amp = "none";
  int64_t seed = 1;
  std::string device = "cpu";
  int64_t threads = 0;
  int64_t side_by_side = 1;
  int64_t checkpoint_every = 0;
  double checkpoint_minutes = 0;
  int64_t keep_checkpoints = 2;
  bool tensorboard = false;
  int64_t ranks = 1;
  double dist_timeout = 300;

  /// An option of the optimizer, or `otherwise` if it has none of this name.
  template <class T>
  T option(const std::string& name, T otherwise) const {
    const auto found = optimizer.find(name);
    return found == optimizer.end() ? otherwise : found->second.get<T>();
  }
  bool bf16() const { return amp == "bf16"; }
  double lr() const { return optimizer.at("lr").get<double>(); }
};

/// One entry of the list of settings: option, recipe key, help, completion and manual page all come from it, and what a
/// setting decides stands here as well.
struct Field {
  /// Where an option of the optimizer is kept.
  struct OptionSlot {
    optimizers::OptimizerValues* values;
    OptionValue like;  ///< a value of its type
  };
  using Value = std::variant<
      bool*, int64_t*, double*, std::string*, std::vector<int64_t>*, std::optional<int64_t>*, std::optional<double>*,
      OptionSlot>;
  enum class Part { Data, Model, Optimizer, Schedule, Training };
  enum class Kind { Flag, Whole, Number, Word, Wholes, Numbers };

  std::string key;    ///< in recipes and logs: lr_step_size
  std::string flags;  ///< on the command line: --lr-step-size, with a short form before it if there is one
  Part part = Part::Training;
  std::string help;
  std::string metavar;  ///< of its value in help
  Value value;
  Bound bound;
  std::vector<std::string> choices;
  std::string table;      ///< what `sgdph list` calls the names it takes; checked where the table is
  std::string zero_text;  ///< what 0 stands for

  /// Why it does nothing in a run of these settings; empty if it does something.
  std::function<std::string(const Settings& settings)> idle;

  bool resumable = false;        ///< may differ when a run is continued
  bool result = true;            ///< false: says where and how a run is done, not what it gives
  bool in_step = false;          ///< ranks need the same all the same: it decides when they meet
  bool per_rank = false;         ///< each rank has its own
  bool identity = true;          ///< makes the run the one it is, whatever seed and machine
  bool network = false;          ///< another value means another network or batch
  bool cost = false;             ///< decides time and memory of a step, not its result
  bool of_task = false;          ///< what is learned, rather than how
  bool series_name = false;      ///< tells the runs of one task apart by itself: optimizer and seed
  bool evaluates = false;        ///< means something to an evaluation
  bool inspects = false;         ///< ... to an inspection, which says itself what of its optimizer does
  bool reproduces = false;       ///< may be chosen for an experiment as a whole
  bool follows_dataset = false;  ///< its default is the data set's

  Kind kind() const;
  bool is_flag() const { return kind() == Kind::Flag; }
  bool is_set() const { return !get().is_null(); }
  /// As JSON; null if unset.
  nlohmann::json get() const;
  /// Refuses a value of another type, out of range or not among the choices; `where` says where it stands.
  void set(const nlohmann::json& value, const std::string& where) const;
  /// Takes the value back, so that `resolve` fills it in.
  void clear() const;
  /// The JSON of a word on the command line.
  nlohmann::json parse(const std::string& word, const std::string& where) const;
  /// A value for readers: 0 may stand for something.
  std::string shown(const nlohmann::json& value) const;
};

const char* to_string(Field::Part part);

/// The list: the run's settings, and the options of the optimizer it has chosen. It points into `settings`.
std::vector<Field> fields_of(Settings& settings);
/// The same with the options of every optimizer, each once, without their bounds.
std::vector<Field> fields_of_all_optimizers(Settings& settings);
/// Null if there is none.
const Field* find_field(const std::vector<Field>& fields, const std::string& key);
/// A value as it stands in tables: a text without quotes, all else as JSON has it.
std::string plain_text(const nlohmann::json& value);

/// A value and where it was given ("--lr", "recipe.toml:7").
struct Given {  // NOLINT(bugprone-exception-escape): of the JSON library's move
  nlohmann::json value;
  std::string where;
};
using Layer = std::map<std::string, Given>;

/// Sets what the layer gives. Unknown keys are refused with the nearest name, and so is what the chosen optimizer does
/// not have.
void apply_layer(Settings& settings, const Layer& layer);
/// Refuses unknown keys, and values that no optimizer would take.
void check_layer(const Layer& layer);

nlohmann::json to_json(const Settings& settings);
/// Of a stored run, whose settings may have the names of an earlier version.
Settings settings_from_json(const nlohmann::json& json, const std::string& where);

}  // namespace sgdph::lab::settings
