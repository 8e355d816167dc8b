#include <sgdph/classifier.h>

#include "sgd_ph/module_blocks.h"

#include <algorithm>
#include <utility>

namespace sgdph {
namespace {

/// Whether the pattern covers the whole text. A star takes as little as it can, and one letter more whenever what
/// follows it does not fit.
bool matches(const std::string& glob, const std::string& text) {
  size_t at = 0;
  size_t place = 0;
  size_t star = std::string::npos;
  size_t taken = 0;
  while (place < text.size()) {
    if (at < glob.size() && glob[at] == '*') {
      star = at++;
      taken = place;
    } else if (at < glob.size() && (glob[at] == '?' || glob[at] == text[place])) {
      ++at;
      ++place;
    } else if (star != std::string::npos) {
      at = star + 1;
      place = ++taken;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', at) == std::string::npos;
}

bool matches_any(const std::vector<std::string>& globs, const std::string& text) {
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) { return matches(glob, text); });
}

}  // namespace

Selector norms() {
  return [](const ParameterInfo& info) {
    return info.module != nullptr && sgd_ph::is_norm_parameter(*info.module, info.local_name);
  };
}

bool is_channel_wise(const at::Tensor& parameter) {
  const auto sizes = parameter.sizes();
  return !sizes.empty() && std::count_if(sizes.begin(), sizes.end(), [](int64_t size) { return size != 1; }) <= 1;
}

Classifier blocks_named(std::vector<std::string> globs) {
  return [globs = std::move(globs)](const ParameterInfo& info) {
    return is_channel_wise(info.parameter) && matches_any(globs, info.name) ? Role::Block : Role::Default;
  };
}

Classifier first_order_named(std::vector<std::string> globs) {
  return [globs = std::move(globs)](const ParameterInfo& info) {
    return matches_any(globs, info.name) ? Role::FirstOrder : Role::Default;
  };
}

Classifier either(Classifier first, Classifier second) {
  return [first = std::move(first), second = std::move(second)](const ParameterInfo& info) {
    const auto role = first ? first(info) : Role::Default;
    return role == Role::Default && second ? second(info) : role;
  };
}

}  // namespace sgdph
