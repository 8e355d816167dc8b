// A library to preload into the command (LD_PRELOAD), so that tests need not wait for LibTorch each time: it takes half
// a second to begin. Between that and `main` the program waits for requests on the socket SGDPH_STARTER; for each it
// forks, and the child goes on into `main` with the words, variables, folder and files of the request.
//
// A request is a packet of words, a zero byte after each: the folder, how many words the command has, these, and
// variables as NAME=VALUE; with it come standard input, output and error, and a pipe for the answers, whole numbers:
// the child's number, and when it has ended its status as waitpid has it and the milliseconds of a core that it took.

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

void begin_faults_anew();

namespace {

using Main = int (*)(int, char**, char**);
constexpr size_t kFiles = 4;
constexpr size_t kLongest = 1 << 17;

Main program_main = nullptr;

struct Request {
  std::vector<char> text;
  std::array<int, kFiles> files{};

  /// False if nobody asks any more.
  bool receive(int socket) {
    text.assign(kLongest, '\0');
    iovec part{text.data(), text.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kFiles)> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const auto bytes = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    const auto* with = CMSG_FIRSTHDR(&message);
    if (bytes <= 0 || with == nullptr || with->cmsg_len != CMSG_LEN(sizeof(int) * kFiles)) return false;
    text.resize(static_cast<size_t>(bytes));
    std::memcpy(files.data(), CMSG_DATA(with), sizeof(int) * kFiles);
    return true;
  }

  std::vector<char*> words() {
    std::vector<char*> all;
    for (size_t at = 0; at < text.size(); at += std::strlen(text.data() + at) + 1) all.push_back(text.data() + at);
    return all;
  }
};

/// In the child: the command as it would have been started.
int become(Request& request, int socket) {
  auto words = request.words();
  ::close(socket);
  for (int file = 0; file < 3; ++file) ::dup2(request.files[static_cast<size_t>(file)], file);
  for (const int file : request.files) ::close(file);
  if (::chdir(words.at(0)) != 0) std::abort();
  const int count = std::atoi(words.at(1));
  static std::vector<char*> arguments(words.begin() + 2, words.begin() + 2 + count);
  arguments.push_back(nullptr);
  ::clearenv();
  for (auto variable = words.begin() + 2 + count; variable != words.end(); ++variable) ::putenv(*variable);
  begin_faults_anew();
  return program_main(count, arguments.data(), environ);
}

void answer(const Request& request, int number) {
  if (::write(request.files.back(), &number, sizeof(number)) != sizeof(number)) ::_exit(1);
}

int milliseconds(const timeval& time) {
  return static_cast<int>(time.tv_sec * 1000 + time.tv_usec / 1000);
}

int serve(int argc, char** argv, char** environment) {
  const auto* number = std::getenv("SGDPH_STARTER");
  if (number == nullptr) return program_main(argc, argv, environment);
  const int socket = std::atoi(number);
  static Request request;
  std::signal(SIGCHLD, SIG_IGN);
  while (request.receive(socket)) {
    if (::fork() == 0) {
      std::signal(SIGCHLD, SIG_DFL);
      const auto child = ::fork();
      if (child == 0) return become(request, socket);
      answer(request, child);
      int status = -1;
      rusage spent{};
      ::wait4(child, &status, 0, &spent);
      answer(request, status);
      answer(request, milliseconds(spent.ru_utime) + milliseconds(spent.ru_stime));
      ::_exit(0);
    }
    for (const int file : request.files) ::close(file);
  }
  return 0;
}

}  // namespace

extern "C" int __libc_start_main(  // NOLINT(bugprone-reserved-identifier)
    Main main, int argc, char** argv, void (*init)(), void (*fini)(), void (*linker_fini)(), void* stack_end) {
  program_main = main;
  using Start = int(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  auto* start = reinterpret_cast<Start*>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(serve, argc, argv, init, fini, linker_fini, stack_end);
}
