#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace sgdph::lab {

/// Everything a run depends on. An unset optional takes the default of the chosen optimizer, data set or machine;
/// `resolve` fills it in, so that a stored run says all.
struct Settings {
  std::string dataset = "fashion-mnist";
  std::string data_path;
  bool augment = true;
  int64_t train_limit = 0;
  int64_t test_limit = 0;
  bool skip_damaged = false;
  std::optional<int64_t> workers;

  std::string model = "resnet8";
  std::string form = "auto";
  std::string norm = "batch";
  double width = 1;
  std::string kernels = "fast";
  std::string init;

  std::string opt = "sgd-ph";
  std::optional<double> lr, weight_decay, momentum, beta1, beta2, eps;
  std::optional<bool> nesterov, amsgrad;
  std::optional<double> lr_so, hessian_momentum, curvature_floor;
  std::optional<std::string> rule, probe, refresh, blocks;
  std::optional<int64_t> probe_cycle, refresh_every;
  std::optional<std::string> curvature_batch, curvature_control;
  std::optional<double> block_multiplier;
  std::optional<bool> shift_guard;
  std::optional<bool> weight_decouple, rectify;
  std::optional<double> hessian_power;
  std::optional<std::string> rebound, weight_decay_type;
  std::optional<int64_t> warmup_steps;

  std::string lr_scheduler = "step";
  int64_t lr_step_size = 30;
  double lr_gamma = 0.1;
  std::vector<int64_t> lr_milestones;
  double lr_min = 0;
  double lr_warmup_epochs = 0;
  double lr_warmup_decay = 0.01;

  int64_t epochs = 10;
  int64_t batch_size = 128;
  int64_t accumulate = 1;
  double label_smoothing = 0;
  double clip_grad_norm = 0;
  int64_t seed = 1;
  std::string device = "cpu";
  int64_t threads = 0;
  int64_t checkpoint_every = 0;
  int64_t keep_checkpoints = 2;
  bool tensorboard = false;
};

/// One entry of the list of settings: option, recipe key, help, completion and manual page all come from it.
struct Field {
  using Value = std::variant<
      bool*, int64_t*, double*, std::string*, std::vector<int64_t>*, std::optional<bool>*, std::optional<int64_t>*,
      std::optional<double>*, std::optional<std::string>*>;

  enum class Part { Data, Model, Optimizer, Schedule, Training };

  std::string key;    ///< in recipes and logs: lr_step_size
  std::string flags;  ///< on the command line: --lr-step-size, with a short form before it if there is one
  Part part = Part::Training;
  std::string help;
  Value value;
  bool changeable = false;  ///< may differ when a run is continued
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;  ///< the bound itself is out of range
  bool high_open = false;
  std::vector<std::string> choices;

  bool is_flag() const;
  /// Whether it says where and how a run is done, not what it gives.
  bool leaves_result_alone() const;
  bool is_set() const;
  /// As JSON; null if unset.
  nlohmann::json get() const;
  /// Refuses a value of another type, out of range or not among the choices; `where` says where it stands.
  void set(const nlohmann::json& value, const std::string& where) const;
  /// The JSON of a word on the command line.
  nlohmann::json parse(const std::string& word, const std::string& where) const;
};

const char* to_string(Field::Part part);

/// The list. It points into `settings`.
std::vector<Field> fields_of(Settings& settings);
std::vector<std::string> field_keys();
/// Null if there is none.
const Field* find_field(const std::vector<Field>& fields, const std::string& key);
/// A value as it stands on a command line and in tables: a text without quotes, all else as JSON has it.
std::string plain_text(const nlohmann::json& value);

/// A value and where it was given ("--lr", "recipe.toml:7").
struct Given {  // NOLINT(bugprone-exception-escape): of the JSON library's move
  nlohmann::json value;
  std::string where;
};
using Layer = std::map<std::string, Given>;

/// Sets what the layer gives. Unknown keys are refused with the nearest name.
void apply_layer(Settings& settings, const Layer& layer);

nlohmann::json to_json(const Settings& settings);
Settings settings_from_json(const nlohmann::json& json, const std::string& where);

}  // namespace sgdph::lab
