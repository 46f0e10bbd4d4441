#include "bench/cuda/supervisor.h"

#include <levin/core/error.h>

#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>

extern char** environ;

namespace levin::bench {

namespace {

/// A child process whose standard output is read line by line.
class Child {
 public:
  explicit Child(std::vector<std::string> command) {
    int ends[2];
    if (pipe(ends) != 0) throw Error(std::string("[bench] pipe failed: ") + std::strerror(errno) + ".");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int error = posix_spawnp(&process_, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    from_ = ends[0];
    if (error != 0) {
      close(from_);
      throw Error("[bench] " + command[0] + " cannot be started: " + std::strerror(error) + ".");
    }
  }
  ~Child() {
    close(from_);
    if (process_ > 0) wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  enum class Read { line, end, silence };
  /// Reads the next line, waiting at most `seconds`.
  Read read_line(std::string& line, double seconds) {
    for (;;) {
      if (const auto end = buffer_.find('\n'); end != std::string::npos) {
        line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return Read::line;
      }
      pollfd ready{.fd = from_, .events = POLLIN, .revents = 0};
      const int n = poll(&ready, 1, static_cast<int>(seconds * 1000));
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) return Read::silence;
      char bytes[4096];
      const ssize_t got = read(from_, bytes, sizeof(bytes));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return Read::end;
      buffer_.append(bytes, static_cast<std::size_t>(got));
    }
  }
  void kill() { ::kill(process_, SIGKILL); }
  int wait() {
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    return status;
  }

 private:
  pid_t process_ = -1;
  int from_ = -1;
  std::string buffer_;
};

std::string reason_of(int status) {
  if (WIFSIGNALED(status)) {
    return "the process ended with signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) +
           ")";
  }
  return "the process ended with status " + std::to_string(WEXITSTATUS(status));
}

/// The outcome of one child process.
struct ProcessRun {
  std::optional<Json> begun;  ///< message of a row that was begun and not reported
  std::optional<Place> next;  ///< the place after the last row that was begun
  std::string reason;         ///< why the process ended; empty if it finished
};

Place behind(const Place& place) {
  return place.position < 0 ? Place{place.entry + 1, -1} : Place{place.entry, place.position + 1};
}

ProcessRun run_once(const Task& task, const Supervision& supervision, const Say& say) {
  ProcessRun run;
  Child child(supervision.command(task));
  std::string line;
  for (;;) {
    const Child::Read read = child.read_line(line, supervision.row_seconds);
    if (read == Child::Read::end) break;
    if (read == Child::Read::silence) {
      child.kill();
      child.wait();
      run.reason =
          "no row came for " + std::to_string(std::lround(supervision.row_seconds)) + " s, so the process was killed";
      return run;
    }
    const Json message = Json::parse(line, nullptr, false);
    if (!message.is_object() || !message.contains("kind")) continue;
    const std::string kind = message["kind"];
    if (message.contains("entry")) run.next = behind({message["entry"], message["position"]});
    if (kind == "begin") {
      run.begun = message;
      continue;
    }
    if (message.contains("entry")) run.begun.reset();
    if (kind != "end") say(message);
  }
  const int status = child.wait();
  if (status != 0) run.reason = reason_of(status);
  return run;
}

}  // namespace

void supervise(Task task, const Supervision& supervision, const Say& say) {
  for (;;) {
    const ProcessRun run = run_once(task, supervision, say);
    if (run.reason.empty()) return;
    if (run.begun) {
      Json row = *run.begun;
      row["kind"] = "row";
      row["row"] = failed_row(row["row"], run.reason + ".");
      say(row);
    }
    if (!run.next || *run.next <= task.from) {  // the process ended before it began a row
      const Json head = {
          {"name", task.family + "/none"}, {"family", task.family}, {"rung", "none"}, {"shape", ""}, {"dtype", ""}};
      if (!run.begun) say({{"kind", "row"}, {"row", failed_row(head, run.reason + ".")}});
      return;
    }
    task.from = *run.next;
  }
}

}  // namespace levin::bench
