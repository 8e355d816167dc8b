// How ranks come together: everything that may end a start is said by name.

#include "base/error.h"
#include "dist/roster_impl.h"

#include <nlohmann/json.hpp>

namespace sgdph::lab::dist {
namespace {

/// The first thing that two ranks do not agree about; empty if there is none.
std::string difference(
    const nlohmann::json& first, const nlohmann::json& other, const std::string& who_first,
    const std::string& who_other) {
  const auto shown = [](const nlohmann::json& facts, const std::string& key) {
    return facts.contains(key) ? facts.at(key).dump() : "not set";
  };
  auto all = first;
  all.update(other);
  for (const auto& item : all.items()) {
    const auto here = shown(first, item.key());
    const auto there = shown(other, item.key());
    if (here == there) continue;
    return fmt::format(
        "{} is {} on {} and {} on {}; all ranks need the same", item.key(), here, who_first, there, who_other);
  }
  return "";
}

}  // namespace

void Roster::Impl::open_store() {
  const auto who = environment.launcher_has_store ? environment.launcher : "rank 0";
  const Alarm alarm(timeout, [this, who] {
    end(fmt::format(
        "nothing at {} answers as the store of {} within {} s; is another program at this port, or another version of "
        "LibTorch on one of the hosts?",
        place(), who, in_seconds(timeout)));
  });
  std::string what = "cannot find rank 0";
  try {
    resolve(environment.address);
    what = fmt::format("cannot reach the store of {} at {}", who, place());
    store = std::make_unique<Store>(environment, timeout);
    store->add("visitors", 1);  // the first word, which another protocol would not answer
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& error) {
    auto text = plain(error);
    if (text.find("in use") != std::string::npos) {
      end(fmt::format("port {} is taken on this host ({}); choose another MASTER_PORT", environment.port, text));
    }
    if (environment.launcher_has_store) {
      text +=
          "; if torchrun is of another PyTorch version than this program, set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 and "
          "use --rdzv-backend=c10d or --standalone";
    }
    end(fmt::format("{} ({})", what, text));
  }
}

std::vector<int64_t> Roster::Impl::missing() {
  std::vector<int64_t> ranks;
  for (int64_t rank = 0; rank < environment.size; ++rank) {
    if (!store->get(key_of("member", rank))) ranks.push_back(rank);
  }
  return ranks;
}

void Roster::Impl::end_missing() {
  const auto ranks = missing();
  tell_and_end(
      *store, fmt::format(
                  "{} {} of {} did not come to {} within {} s; is the command running there, with this MASTER_ADDR and "
                  "MASTER_PORT?",
                  ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "), environment.size, place(),
                  in_seconds(timeout)));
}

/// Rank 0 reads what every rank says of itself, compares, and gives all of them the list.
void Roster::Impl::gather(const nlohmann::json& facts) {
  auto list = nlohmann::json::array();
  for (int64_t rank = 0; rank < environment.size; ++rank) {
    const auto other = nlohmann::json::parse(store->get(key_of("member", rank)).value());
    list.push_back({{"host", other.at("host")}, {"address", other.at("address")}});
    const auto differs = difference(
        facts, other.at("facts"), "rank 0 on " + host_name(),
        fmt::format("rank {} on {}", rank, other.at("host").get<std::string>()));
    if (!differs.empty()) tell_and_end(*store, differs);
  }
  store->set("roster", list.dump());
}

void Roster::Impl::wait_for_roster(Clock::time_point deadline) {
  while (!store->get("roster")) {
    if (const auto failure = store->get("failure")) end(*failure);
    if (Clock::now() > deadline) end_missing();
    std::this_thread::sleep_for(Milliseconds(20));
  }
}

void Roster::Impl::check_addresses() const {
  const auto local = [](const Member& member) { return is_loopback(member.address); };
  const auto inside = std::find_if(members.begin(), members.end(), local);
  // Where those listen that name an interface is found out when they connect.
  const auto outside = std::find_if(members.begin(), members.end(), [&](const Member& member) {
    return !local(member) && member.address.rfind("interface ", 0) != 0;
  });
  if (inside == members.end() || outside == members.end()) return;
  end(fmt::format(
      "{} would listen at {}, which {} at {} cannot reach; give MASTER_ADDR as an address, since its name is the host "
      "itself in /etc/hosts there, or set GLOO_SOCKET_IFNAME",
      name(inside - members.begin()), inside->address, name(outside - members.begin()), outside->address));
}

void Roster::Impl::join(const nlohmann::json& facts) {
  const auto deadline = Clock::now() + timeout;
  open_store();
  const Alarm alarm(timeout + look, [this] { end(store_is_gone("no answer")); });
  // What is met here and is no failure of the others is a lost store.
  try {
    if (store->add(key_of("arrivals", environment.rank), 1) != 1) {
      end(fmt::format(
          "there is a rank {} at {} already; another run uses this port, or two processes have the same RANK",
          environment.rank, place()));
    }
    store->set(
        key_of("member", environment.rank),
        nlohmann::json{{"host", host_name()}, {"address", own_address()}, {"facts", facts}}.dump());
    if (environment.rank == 0) {
      while (store->add("members", 0) < environment.size - 1) {
        if (const auto failure = store->get("failure")) tell_and_end(*store, *failure);
        if (Clock::now() > deadline) end_missing();
        std::this_thread::sleep_for(Milliseconds(20));
      }
      gather(facts);
    } else {
      store->add("members", 1);
      wait_for_roster(deadline);
    }
    for (const auto& one : nlohmann::json::parse(store->get("roster").value())) {
      members.push_back({one.at("host").get<std::string>(), one.at("address").get<std::string>()});
    }
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& error) {
    end(store_is_gone(plain(error)));
  }
  check_addresses();
}

}  // namespace sgdph::lab::dist
