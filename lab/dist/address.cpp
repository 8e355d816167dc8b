#include "dist/address.h"

#include "base/error.h"
#include "base/text.h"

#include <fmt/ranges.h>

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

namespace sgdph::lab::dist {
namespace {

struct FreeList {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, FreeList>;

AddressList look_up(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), "9", &hints, &found);
  if (error != 0) {
    throw std::runtime_error(fmt::format(
        "MASTER_ADDR: '{}' does not resolve here ({}); give rank 0's address, or put the name into /etc/hosts", host,
        ::gai_strerror(error)));
  }
  return AddressList(found);
}

std::string text_of(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  ::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return text.data();
}

void set_port(sockaddr& address, int64_t port) {
  const auto number = htons(static_cast<uint16_t>(port));
  if (address.sa_family == AF_INET) reinterpret_cast<sockaddr_in&>(address).sin_port = number;
  if (address.sa_family == AF_INET6) reinterpret_cast<sockaddr_in6&>(address).sin6_port = number;
}

bool accepts(const addrinfo& there) {
  constexpr int kPatience = 2000;  // milliseconds
  const int socket = ::socket(there.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  bool accepted = ::connect(socket, there.ai_addr, there.ai_addrlen) == 0;
  if (!accepted && errno == EINPROGRESS) {
    pollfd answer{socket, POLLOUT, 0};
    int error = 0;
    socklen_t length = sizeof error;
    accepted = ::poll(&answer, 1, kPatience) == 1 && ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 &&
               error == 0;
  }
  ::close(socket);
  return accepted;
}

}  // namespace

std::string resolve(const std::string& host) {
  const auto found = look_up(host);
  return text_of(found->ai_addr, found->ai_addrlen);
}

std::string address_towards(const std::string& host) {
  const auto found = look_up(host);
  for (const auto* one = found.get(); one != nullptr; one = one->ai_next) {
    const int socket = ::socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    sockaddr_storage own{};
    socklen_t length = sizeof own;
    auto* address = reinterpret_cast<sockaddr*>(&own);
    const bool known =
        ::connect(socket, one->ai_addr, one->ai_addrlen) == 0 && ::getsockname(socket, address, &length) == 0;
    ::close(socket);
    if (known) return text_of(address, length);
  }
  throw std::runtime_error(fmt::format("MASTER_ADDR: there is no way from here to {}: {}", host, std::strerror(errno)));
}

int64_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t length = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const bool bound = socket >= 0 && ::bind(socket, any, length) == 0 && ::getsockname(socket, any, &length) == 0;
  ::close(socket);
  if (!bound) throw std::runtime_error(fmt::format("cannot find a free port: {}", std::strerror(errno)));
  return ntohs(address.sin_port);
}

bool is_taken(int64_t port) {
  const auto cannot_bind = [](int family, const auto& address) {
    const int socket = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) return false;
    // As c10d does: what an earlier run left waiting is no hindrance.
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const bool taken =
        ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 && errno == EADDRINUSE;
    ::close(socket);
    return taken;
  };
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(static_cast<uint16_t>(port));
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = four.sin_port;
  return cannot_bind(AF_INET, four) || cannot_bind(AF_INET6, six);
}

bool is_listening(const std::string& host, int64_t port) {
  const auto found = look_up(host);
  for (auto* one = found.get(); one != nullptr; one = one->ai_next) {
    set_port(*one->ai_addr, port);
    if (accepts(*one)) return true;
  }
  return false;
}

bool is_loopback(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "::1";
}

std::vector<std::string> interfaces_of(const char* text) {
  return text == nullptr || *text == '\0' ? std::vector<std::string>() : words_of_list(text);
}

void check_interface(const std::string& name) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  std::set<std::string> names;
  for (const auto* one = list; one != nullptr; one = one->ifa_next) {
    const bool has_address =
        one->ifa_addr != nullptr && (one->ifa_addr->sa_family == AF_INET || one->ifa_addr->sa_family == AF_INET6);
    if (has_address && (one->ifa_flags & IFF_UP) != 0) names.insert(one->ifa_name);
  }
  if (names.count(name) == 0) {
    throw std::runtime_error(fmt::format(
        "GLOO_SOCKET_IFNAME: there is no interface '{}' with an address here; there are {}", name,
        fmt::join(names, ", ")));
  }
}

}  // namespace sgdph::lab::dist
