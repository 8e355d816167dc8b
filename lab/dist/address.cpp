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
#include <utility>

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

/// A connection, while the object lives, if one comes about soon.
class Connection {
 public:
  explicit Connection(const addrinfo& there)
      : socket_(::socket(there.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    constexpr int kPatience = 2000;  // milliseconds
    if (socket_ < 0) return;
    made_ = ::connect(socket_, there.ai_addr, there.ai_addrlen) == 0;
    if (made_ || errno != EINPROGRESS) return;
    int error = 0;
    socklen_t length = sizeof error;
    made_ =
        happens(POLLOUT, kPatience) && ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool made() const { return made_; }
  Unasked hears() const {
    constexpr int kMoment = 300;  // milliseconds
    if (!happens(POLLIN, kMoment)) return Unasked::Silent;
    char first = 0;
    return ::recv(socket_, &first, 1, MSG_PEEK) > 0 ? Unasked::Speaks : Unasked::HangsUp;
  }

 private:
  bool happens(int16_t event, int milliseconds) const {
    pollfd one{socket_, event, 0};
    return ::poll(&one, 1, milliseconds) == 1;
  }

  int socket_;
  bool made_ = false;
};

/// Those that are up; none if they cannot be found out.
std::vector<std::pair<std::string, std::string>> addresses_by_interface() {
  std::vector<std::pair<std::string, std::string>> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  for (const auto* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const auto family = one->ifa_addr->sa_family;
    if (family == AF_INET) found.emplace_back(one->ifa_name, text_of(one->ifa_addr, sizeof(sockaddr_in)));
    if (family == AF_INET6) found.emplace_back(one->ifa_name, text_of(one->ifa_addr, sizeof(sockaddr_in6)));
  }
  return found;
}

/// This port at all addresses of this host, while the object lives. As c10d has it: what an earlier run left waiting is
/// no hindrance.
class AnyAddress {
 public:
  AnyAddress(int family, int64_t port) : socket_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (socket_ < 0) return;
    const int yes = 1;
    ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (family == AF_INET6) ::setsockopt(socket_, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    sockaddr_storage any{};
    auto* address = reinterpret_cast<sockaddr*>(&any);
    address->sa_family = static_cast<sa_family_t>(family);
    set_port(*address, port);
    bound_ = ::bind(socket_, address, family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in)) == 0;
  }
  ~AnyAddress() { ::close(socket_); }
  AnyAddress(const AnyAddress&) = delete;
  AnyAddress& operator=(const AnyAddress&) = delete;

  bool bound() const { return bound_; }
  bool listens() const { return bound_ && ::listen(socket_, SOMAXCONN) == 0; }

 private:
  int socket_;
  bool bound_ = false;
};

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
  const auto cannot_bind = [port](int family) {
    errno = 0;
    const AnyAddress all(family, port);
    return !all.bound() && errno == EADDRINUSE;
  };
  return cannot_bind(AF_INET) || cannot_bind(AF_INET6);
}

bool is_listening(const std::string& host, int64_t port) {
  const auto found = look_up(host);
  for (auto* one = found.get(); one != nullptr; one = one->ai_next) {
    set_port(*one->ai_addr, port);
    if (Connection(*one).made()) return true;
  }
  return false;
}

Unasked heard_unasked(const std::string& host, int64_t port) {
  const auto found = look_up(host);
  for (auto* one = found.get(); one != nullptr; one = one->ai_next) {
    set_port(*one->ai_addr, port);
    const Connection connection(*one);
    if (connection.made()) return connection.hears();
  }
  return Unasked::HangsUp;
}

bool reaches_itself(const std::string& host, int64_t port) {
  const auto found = look_up(host);
  for (const auto* one = found.get(); one != nullptr; one = one->ai_next) {
    const int socket = ::socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    set_port(*one->ai_addr, 0);
    const bool own = socket >= 0 && ::bind(socket, one->ai_addr, one->ai_addrlen) == 0;
    ::close(socket);
    if (own) return true;
  }
  const AnyAddress four(AF_INET, port), six(AF_INET6, port);
  const bool by_four = four.listens(), by_six = six.listens();
  return (by_four || by_six) && is_listening(host, port);
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> found;
  for (const auto& [name, address] : addresses_by_interface()) {
    if (!is_loopback(address) && address.find('%') == std::string::npos) found.push_back(address);
  }
  return found;
}

bool is_loopback(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "::1";
}

std::vector<std::string> interfaces_of(const char* text) {
  return text == nullptr || *text == '\0' ? std::vector<std::string>() : words_of_list(text);
}

void check_interface(const std::string& name) {
  std::set<std::string> names;
  for (const auto& one : addresses_by_interface()) names.insert(one.first);
  if (!names.empty() && names.count(name) == 0) {
    throw std::runtime_error(fmt::format(
        "GLOO_SOCKET_IFNAME: there is no interface '{}' with an address here; there are {}", name,
        fmt::join(names, ", ")));
  }
}

}  // namespace sgdph::lab::dist
