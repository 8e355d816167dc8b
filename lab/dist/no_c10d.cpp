#include "base/error.h"
#include "dist/c10d.h"

namespace sgdph::lab::dist {

void check_built_for(const Environment& environment) {
  fail(
      "{} started {} processes, and this sgdph was built without Gloo, by which they would work together: install "
      "libgloo-dev (for a LibTorch of your own, name Gloo's headers in SGDPH_GLOO_INCLUDE_DIR) and build again; one "
      "process works as it is",
      environment.launcher, environment.size);
}

struct Store::Impl {};

Store::Store(const Environment&, Milliseconds) {}
Store::~Store() = default;
void Store::set(const std::string&, const std::string&) {}
std::optional<std::string> Store::get(const std::string&) {
  return std::nullopt;
}
int64_t Store::add(const std::string&, int64_t) {
  return 0;
}

struct Collectives::Impl {};

Collectives::Collectives(
    Store&, const Environment&, bool, const std::string&, const std::vector<std::string>&, Milliseconds) {}
Collectives::~Collectives() = default;
Wait Collectives::begin_sum(at::Tensor&) {
  return [] {};
}
Wait Collectives::begin_broadcast(at::Tensor&) {
  return [] {};
}
void Collectives::let_go() {}

}  // namespace sgdph::lab::dist
