#include <fcntl.h>
#include <fmt/format.h>
#include <levin/distributed/launcher.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <thread>

#include "src/transports/socket.h"

namespace levin::distributed {

namespace {

constexpr const char* kLaunched = "LEVIN_LAUNCHED";
constexpr auto kAfterTerm = std::chrono::seconds(2);

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

Environment environment_of(const LaunchOptions& o, int local_rank, int port) {
  Environment env = environment();
  for (const auto& [name, value] : o.environment) env[name] = value;
  env["RANK"] = std::to_string(o.node_rank * o.processes + local_rank);
  env["WORLD_SIZE"] = std::to_string(o.num_nodes * o.processes);
  env["LOCAL_RANK"] = std::to_string(local_rank);
  env["LOCAL_WORLD_SIZE"] = std::to_string(o.processes);
  env["NODE_RANK"] = std::to_string(o.node_rank);
  env["MASTER_ADDR"] = o.master_addr;
  env["MASTER_PORT"] = std::to_string(port);
  env[kLaunched] = "1";
  return env;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& t : texts) list.push_back(t.data());
  list.push_back(nullptr);
  return list;
}

// Prepares everything before the fork: the child makes only system calls.
pid_t start(const std::string& program, std::vector<std::string> arguments, const Environment& env) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : env) variables.push_back(name + "=" + value);
  const auto argv = pointers(arguments), envp = pointers(variables);
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) throw DistributedError("[launch] pipe() failed: too many open files?");
  const Descriptor read_end(failure[0]);
  Descriptor write_end(failure[1]);
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) execve(program.c_str(), argv.data(), envp.data());
    const int error = errno;
    [[maybe_unused]] const auto n = write(failure[1], &error, sizeof error);
    _exit(127);
  }
  int error = errno;
  write_end.close();
  if (child > 0 && read(read_end.get(), &error, sizeof error) == 0) return child;
  if (child > 0) waitpid(child, nullptr, 0);
  throw DistributedError(fmt::format("[launch] {} could not be started: {}.", program, std::strerror(error)));
}

std::array<std::atomic<bool>, 65> signalled{};

// Handles SIGTERM and SIGUSR1 while it lives, to pass them on to the children.
class SignalsForChildren {
 public:
  SignalsForChildren() {
    struct sigaction action {};
    action.sa_handler = [](int signal) { signalled[static_cast<std::size_t>(signal)] = true; };
    for (std::size_t i = 0; i < kPassed.size(); ++i) sigaction(kPassed[i], &action, &old_[i]);
  }
  ~SignalsForChildren() {
    for (std::size_t i = 0; i < kPassed.size(); ++i) sigaction(kPassed[i], &old_[i], nullptr);
  }
  SignalsForChildren(const SignalsForChildren&) = delete;
  SignalsForChildren& operator=(const SignalsForChildren&) = delete;
  template <class F>
  void pass_on(const F& send) {
    for (const int s : kPassed) {
      if (signalled[static_cast<std::size_t>(s)].exchange(false)) send(s);
    }
  }

 private:
  static constexpr std::array kPassed = {SIGTERM, SIGUSR1};
  std::array<struct sigaction, kPassed.size()> old_{};
};

class Children {
 public:
  ~Children() {
    send(SIGKILL);
    for (const pid_t p : pids_) {
      if (p > 0) waitpid(p, nullptr, 0);
    }
  }
  void add(pid_t pid) { pids_.push_back(pid); }
  void send(int signal) const {
    for (const pid_t p : pids_) {
      if (p > 0) kill(p, signal);
    }
  }
  // Records the status of children that have ended; returns true while some run.
  bool collect(LaunchResult& result) {
    bool running = false;
    result.statuses.resize(pids_.size(), 0);
    for (std::size_t i = 0; i < pids_.size(); ++i) {
      int status = 0;
      if (pids_[i] == 0) continue;
      if (waitpid(pids_[i], &status, WNOHANG) != pids_[i]) {
        running = true;
        continue;
      }
      pids_[i] = 0;
      result.statuses[i] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (result.statuses[i] != 0 && result.first_failed < 0) result.first_failed = static_cast<int>(i);
    }
    return running;
  }

 private:
  std::vector<pid_t> pids_;
};

// Waits until all children have ended. Those still running when `grace` has passed since the first failure (or since
// `begun`) are terminated.
LaunchResult wait_for(Children& children, Duration grace, Clock::time_point begun,
                      const std::function<void()>& between) {
  LaunchResult result;
  auto term = Clock::time_point::max(), kill = term;
  while (children.collect(result)) {
    const auto now = Clock::now();
    between();
    if (begun == Clock::time_point::max() && result.first_failed >= 0) begun = now;
    if (begun != Clock::time_point::max() && term == Clock::time_point::max()) {
      term = begun + Clock::duration(grace);
      kill = term + kAfterTerm;
    }
    if (now >= term) children.send(now >= kill ? SIGKILL : SIGTERM);
    std::this_thread::sleep_for(Milliseconds(now >= term ? 100 : 10));
  }
  return result;
}

void check(const LaunchOptions& options) {
  if (options.processes < 1 || options.num_nodes < 1 || options.node_rank < 0 ||
      options.node_rank >= options.num_nodes) {
    throw ValueError(fmt::format("[launch] {} processes on node {} of {} cannot be launched; nodes count from 0.",
                                 options.processes, options.node_rank, options.num_nodes));
  }
  if (options.num_nodes > 1 && options.master_port == 0) {
    throw ValueError("[launch] several nodes need a MASTER_PORT that all of them know.");
  }
}

void start_ranks(Children& children, const LaunchOptions& options, int first, int port) {
  const auto arguments = options.arguments.empty() ? own_arguments() : options.arguments;
  for (int r = first; r < options.processes; ++r)
    children.add(start(options.program, arguments, environment_of(options, r, port)));
}

}  // namespace

struct HeldPort::Impl {
  Descriptor socket;
};

HeldPort::HeldPort() : impl_(std::make_unique<Impl>()) {
  try {
    impl_->socket = hold_port();
  } catch (const SocketFailure& e) {
    throw DistributedError(fmt::format("[launch] this machine has no free port: {}.", e.reason));
  }
}

HeldPort::~HeldPort() = default;

int HeldPort::number() const { return port_of(impl_->socket.get()); }

bool is_launched() { return environment().contains(kLaunched); }

LaunchResult launch(const LaunchOptions& options) {
  check(options);
  SignalsForChildren signals;
  std::optional<HeldPort> port;
  if (options.master_port == 0) port.emplace();
  Children children;
  start_ranks(children, options, 0, port ? port->number() : options.master_port);
  return wait_for(children, options.grace, Clock::time_point::max(),
                  [&] { signals.pass_on([&](int signal) { children.send(signal); }); });
}

struct LocalRanks::Impl {
  Children children;
  Duration grace;
};

LocalRanks::LocalRanks(const LaunchOptions& options) : impl_(std::make_unique<Impl>()) {
  check(options);
  if (options.master_port == 0) throw ValueError("[launch] the other ranks need a MASTER_PORT to find this one.");
  impl_->grace = options.grace;
  start_ranks(impl_->children, options, 1, options.master_port);
}

LocalRanks::~LocalRanks() {
  wait_for(impl_->children, impl_->grace, Clock::now(), [] {});
}

}  // namespace levin::distributed
