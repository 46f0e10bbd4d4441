#include "src/launch/slurm.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "src/logging.h"

extern char** environ;  // NOLINT: POSIX

namespace levin::slurm {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kPrefix = "hpc_ckpt_";

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here changes the environment
  if (!value || *value == 0) return std::nullopt;
  return value;
}

/// Returns the k of root/hpc_ckpt_k, 0 for other names.
int number_of(const fs::path& path) {
  const std::string name = path.filename().string();
  int k = 0;
  if (!name.starts_with(kPrefix)) return 0;
  const auto [rest, status] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), k);
  return status == std::errc{} && rest == name.data() + name.size() ? k : 0;
}

int newest_number(const fs::path& root) {
  int newest = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root, ignored)) newest = std::max(newest, number_of(entry.path()));
  return newest;
}

}  // namespace

std::optional<std::string> job_id() {
  const auto job = variable("SLURM_JOB_ID");
  const auto name = variable("SLURM_JOB_NAME").value_or("");
  if (!job || name == "bash" || name == "interactive") return std::nullopt;
  const auto array = variable("SLURM_ARRAY_JOB_ID"), task = variable("SLURM_ARRAY_TASK_ID");
  return array && task ? *array + "_" + *task : *job;
}

bool requeue(const std::string& job) {
  std::string words[] = {"scontrol", "requeue", job};
  char* const argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t child = 0;
  if (const int error = posix_spawnp(&child, argv[0], nullptr, nullptr, argv, environ); error != 0) {
    logging::warn("job {} was not requeued: scontrol: {}", job, std::strerror(error));
    return false;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  logging::warn("job {} was not requeued: scontrol requeue ended with status {}", job,
                WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  return false;
}

fs::path newest_checkpoint(const fs::path& root) {
  const int k = newest_number(root);
  return k > 0 ? root / fmt::format("{}{}", kPrefix, k) : fs::path();
}

fs::path next_checkpoint(const fs::path& root) { return root / fmt::format("{}{}", kPrefix, newest_number(root) + 1); }

}  // namespace levin::slurm
