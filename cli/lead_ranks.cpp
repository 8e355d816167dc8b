#include "lead_ranks.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "dist/address.h"
#include "dist/group.h"
#include "train/ranks.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace sgdph::cli {
namespace {

std::string key_of(int64_t number) {
  return fmt::format("study/{}", number);
}
std::string ready_key(int64_t number, int64_t rank) {
  return fmt::format("study/{}/{}", number, rank);
}
/// Set by a rank that was asked to stop.
constexpr const char* kStop = "study/stop";

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
    group.post(key_of(number), nlohmann::json{{"words", words}, {"port", port}}.dump());
    // A rank that stops starts no process, and this one's would wait for it.
    for (int64_t rank = 1; rank < group.size(); ++rank) {
      if (group.wait_for(ready_key(number, rank)) == "stop") lab::interrupt();
    }
    ++number;
    lab::ProcessEnd end;
    end.exit_code = lab::kInterrupted;
    if (!lab::interrupted()) end = run_at(port, words, take);
    // Whichever rank was asked, all of them stop.
    if (end.exit_code == lab::kInterrupted || group.find(kStop)) lab::interrupt();
    if (lab::interrupted()) return end;
    if (end.exit_code == lab::dist::kLostPeers) {
      group.abandon(end.reason());
      lab::dist::end_process(end.reason());
    }
    return end;
  };
  const int code = study(run);
  group.post(key_of(number), nlohmann::json{{"code", code}}.dump());
  return code;
}

int follow(lab::dist::Group& group) {
  const lab::InterruptGuard guard;
  bool told = false;
  const auto stop_if_asked = [&] {
    if (lab::interrupted() && !std::exchange(told, true)) group.post(kStop, "");
  };
  for (int64_t number = 0;; ++number) {
    const auto next = nlohmann::json::parse(group.wait_for(key_of(number), stop_if_asked));
    if (next.contains("code")) return next["code"];
    const bool stopping = lab::interrupted();
    group.post(ready_key(number, group.rank()), stopping ? "stop" : "go");
    if (stopping) continue;
    auto words = next["words"].get<std::vector<std::string>>();
    words.front() = lab::own_program();
    run_at(next["port"], words, [](const auto&) {});
    stop_if_asked();
  }
}

}  // namespace

int lead_ranks(
    const SharedStudy& shared, lab::settings::Layer& options,
    const std::function<int(const lab::RunProcess& run)>& study) {
  const auto environment = lab::dist::environment();
  if (environment.alone()) return study(lab::run_process);
  if (shared.jobs > 1) lab::fail("--jobs: ranks share one run after the other; leave it out");
  lab::dist::GroupOptions of_group;
  of_group.facts = shared.facts;
  of_group.facts.update(lab::train::facts_of(shared.sources));
  of_group.timeout = lab::train::timeout_of(shared.sources);
  lab::settings::Settings scratch;
  for (const auto& recipe : shared.sources.recipes) {
    if (const auto threads = recipe.run.find("threads"); threads != recipe.run.end()) {
      lab::settings::apply_layer(scratch, {*threads});
    }
  }
  lab::dist::Group group(environment, of_group);
  return lab::dist::guarded(group, [&] {
    if (!group.is_first()) return follow(group);
    lab::train::take_environment(scratch, environment, false);
    options.insert({"threads", {scratch.threads, "--threads"}});
    return lead(group, study);
  });
}

}  // namespace sgdph::cli
