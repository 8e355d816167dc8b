#include "settings/optimizer_table.h"

#include "base/names.h"

#include <algorithm>

namespace sgdph::lab {

bool OptimizerInfo::has(const std::string& key) const {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

const std::vector<OptimizerInfo>& optimizer_infos() {
  static const std::vector<OptimizerInfo> infos{
      {"sgdm", "SGDM", "SGD with momentum", {"lr", "weight_decay", "momentum", "nesterov"}},
      {"adam", "Adam", "Adam (Kingma & Ba)", {"lr", "weight_decay", "beta1", "beta2", "eps", "amsgrad"}},
      {"adamw",
       "AdamW",
       "Adam with decoupled weight decay (Loshchilov & Hutter)",
       {"lr", "weight_decay", "beta1", "beta2", "eps", "amsgrad"}},
      {"adabelief",
       "AdaBelief",
       "AdaBelief (Zhuang et al.)",
       {"lr", "weight_decay", "beta1", "beta2", "eps", "amsgrad", "weight_decouple", "rectify"}},
      {"adahessian",
       "AdaHessian",
       "AdaHessian (Yao et al.): a Hessian product of the whole network per step",
       {"lr", "weight_decay", "beta1", "beta2", "eps", "hessian_power", "curvature_batch"}},
      {"apollo",
       "Apollo",
       "Apollo (Ma): diagonal quasi-Newton",
       {"lr", "weight_decay", "beta1", "eps", "rebound", "weight_decay_type", "warmup_steps"}},
      {"sgd-ph",
       "SGD-PH",
       "SGD with Partial Hessian (Sun, Yong & Zhang)",
       {"lr", "weight_decay", "momentum", "eps", "lr_so", "hessian_momentum", "curvature_floor", "rule", "probe",
        "probe_cycle", "refresh", "refresh_every", "curvature_batch", "curvature_control", "block_multiplier",
        "shift_guard", "blocks"}},
  };
  return infos;
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const auto& info : optimizer_infos()) names.push_back(info.name);
  return names;
}

const OptimizerInfo& optimizer_info(const std::string& name) {
  check_name("optimizer", name, optimizer_names());
  const auto& infos = optimizer_infos();
  return *std::find_if(infos.begin(), infos.end(), [&](const auto& info) { return info.name == name; });
}

}  // namespace sgdph::lab
