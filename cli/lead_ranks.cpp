#include "lead_ranks.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "dist/address.h"
#include "dist/group.h"
#include "train/ranks.h"

#include <cstdlib>
#include <string>
#include <vector>

namespace sgdph::cli {
namespace {

std::string key_of(int64_t number) {
  return fmt::format("study/{}", number);
}

/// The processes of a run meet at a port of their own: this one's is taken by the study's.
lab::ProcessEnd run_at(int64_t port, const std::vector<std::string>& words, const lab::TakeRecord& take) {
  ::setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
  ::setenv("TORCHELASTIC_USE_AGENT_STORE", "False", 1);
  return lab::run_process(words, take);
}

int lead(lab::dist::Group& group, const std::function<int(const lab::RunProcess& run)>& study) {
  int64_t number = 0;
  const auto run = [&](const std::vector<std::string>& words, const lab::TakeRecord& take) {
    const auto port = lab::dist::free_port();
    group.post(key_of(number++), nlohmann::json{{"words", words}, {"port", port}}.dump());
    auto end = run_at(port, words, take);
    if (end.exit_code == lab::dist::kLostPeers) {
      group.abandon(end.reason());
      lab::dist::end_process(group.environment(), end.reason());
    }
    return end;
  };
  const int code = study(run);
  group.post(key_of(number), nlohmann::json{{"code", code}}.dump());
  return code;
}

int follow(lab::dist::Group& group) {
  const lab::InterruptGuard guard;
  for (int64_t number = 0;; ++number) {
    const auto next = nlohmann::json::parse(group.wait_for(key_of(number)));
    if (next.contains("code")) return next["code"];
    auto words = next["words"].get<std::vector<std::string>>();
    words.front() = lab::own_program();
    run_at(next["port"], words, [](const auto&) {});
  }
}

}  // namespace

int lead_ranks(lab::settings::Layer& given, int64_t jobs, const std::function<int(const lab::RunProcess& run)>& study) {
  const auto environment = lab::dist::environment();
  if (environment.alone()) return study(lab::run_process);
  if (jobs > 1) lab::fail("--jobs: ranks share one run after the other; leave it out");
  lab::dist::GroupOptions options;
  options.facts = lab::train::version_facts();
  for (const auto& [key, value] : given) options.facts[value.where] = value.value;
  lab::settings::Settings scratch;
  if (const auto found = given.find("dist_timeout"); found != given.end()) {
    lab::settings::apply_layer(scratch, {*found});
  }
  options.timeout = scratch.dist_timeout;
  lab::dist::Group group(environment, options);
  return lab::dist::guarded(group, [&] {
    if (!group.is_first()) return follow(group);
    lab::train::take_environment(scratch, environment, false);
    given.insert({"threads", {scratch.threads, "--threads"}});
    return lead(group, study);
  });
}

}  // namespace sgdph::cli
