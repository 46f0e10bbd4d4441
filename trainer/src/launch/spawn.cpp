#include "src/launch/spawn.h"

#include <levin/distributed/launcher.h>
#include <levin/trainer/signals.h>
#include <levin/trainer/strategy.h>

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace levin {
namespace {

namespace fs = std::filesystem;
using distributed::environment;

constexpr const char *kCall = "LEVIN_SPAWN_CALL", *kFolder = "LEVIN_SPAWN_FOLDER";

/// Folder for results passed between the processes; the parent removes it when it exits.
class Folder {
 public:
  Folder() {
    const auto env = environment();
    own_ = !env.contains(kFolder);
    path_ = own_ ? fs::temp_directory_path() / fmt::format("levin-spawn-{}", getpid()) : fs::path(env.at(kFolder));
    if (own_) fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    if (own_) fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  bool own_ = false;
};

const Folder& folder() {
  static const Folder one;
  return one;
}

}  // namespace

bool is_spawning_parent(const std::string& strategy, std::size_t processes) {
  return strategy == "ddp_spawn" && processes > 1 && !distributed::has_launcher(environment());
}

SpawnCall next_spawn_call(const TrainerConfig& c) {
  static int count = 0;
  const auto env = environment();
  SpawnCall call;
  if (c.strategy != "ddp_spawn") return call;
  if (is_spawning_parent(c.strategy, choose_devices(c.accelerator, c.devices).size()))
    call.part = SpawnCall::Part::parent;
  else if (env.contains(kCall))
    call.part = count < std::stoi(env.at(kCall)) ? SpawnCall::Part::past : SpawnCall::Part::rank;
  else
    return call;
  call.number = count++;
  call.result = folder().path() / std::to_string(call.number);
  return call;
}

void run_ranks(const SpawnCall& call, const TrainerConfig& c) {
  const SignalGuard signals(c.handle_signals);  // Ctrl-C also reaches the ranks, which save and exit
  const auto ended =
      distributed::launch({.processes = static_cast<int>(choose_devices(c.accelerator, c.devices).size()),
                           .environment = {{kCall, std::to_string(call.number)}, {kFolder, folder().path().string()}}});
  const int status = ended.exit_status();
  if (status == 128 + SIGINT || status == 128 + SIGTERM || status == 128 + SIGUSR1)
    throw Interrupted(status - 128, "the ranks were interrupted; see above for the checkpoints that they saved.");
  if (status != 0)
    throw distributed::DistributedError(
        fmt::format("[ddp_spawn] rank {} ended with status {}. See its message above.", ended.first_failed, status));
}

}  // namespace levin
