#include "fuzz/processes.h"

#include <fmt/format.h>

#include <poll.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <stdexcept>

namespace levin::fuzz {

namespace {

constexpr unsigned kSeconds = 20;  // processor time that one test may take

/// Ends this process after `seconds` of processor time, so that a busy machine fails no test, or after thirty times as
/// long on the clock, should it wait for ever.
void limit(unsigned seconds) {
  const itimerval time{.it_interval = {}, .it_value = {.tv_sec = static_cast<time_t>(seconds), .tv_usec = 0}};
  setitimer(ITIMER_PROF, &time, nullptr);
  alarm(30 * seconds);
}

void write_all(int to, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(to, text.data() + done, text.size() - done);
    if (n <= 0) _exit(3);
    done += static_cast<std::size_t>(n);
  }
}

std::string death_of(int status, unsigned seconds) {
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM))
    return fmt::format("takes more than {} s", seconds);
  if (WIFSIGNALED(status)) return fmt::format("the process died: {}", strsignal(WTERMSIG(status)));
  return fmt::format("the process ended with status {}", WEXITSTATUS(status));
}

/// One of several processes, each of which runs every n-th test.
struct Worker {
  pid_t pid = -1;
  int from = -1;       ///< the read end of its pipe
  std::string text{};  ///< an incomplete message from it
};

class Pool {
 public:
  Pool(std::int64_t first, std::int64_t count, int workers, const std::function<std::string(std::int64_t)>& test)
      : end_(first + count), workers_(static_cast<std::size_t>(workers)), test_(test) {
    void* const shared = mmap(nullptr, sizeof(std::atomic<std::int64_t>) * workers_.size(), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) throw std::runtime_error("no shared memory for the workers");
    next_ = static_cast<std::atomic<std::int64_t>*>(shared);
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      next_[i] = first + static_cast<std::int64_t>(i);
      start(i);
    }
  }
  ~Pool() { munmap(static_cast<void*>(next_), sizeof(std::atomic<std::int64_t>) * workers_.size()); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Waits for an event. Returns false if all workers have ended.
  bool step() {
    std::vector<pollfd> waiting;
    std::vector<std::size_t> of;
    for (std::size_t i = 0; i < workers_.size(); ++i)
      if (workers_[i].pid > 0) waiting.push_back({workers_[i].from, POLLIN, 0}), of.push_back(i);
    if (waiting.empty()) return false;
    if (poll(waiting.data(), waiting.size(), 500) <= 0) return true;
    for (std::size_t k = 0; k < waiting.size(); ++k)
      if (waiting[k].revents != 0) receive(of[k]);
    return true;
  }
  std::int64_t done(std::int64_t first) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < workers_.size(); ++i)
      sum += (next_[i] - first) / static_cast<std::int64_t>(workers_.size());
    return sum;
  }
  std::vector<Failure> failures;

 private:
  void start(std::size_t i) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe for a worker");
    const pid_t pid = fork();
    if (pid < 0) throw std::runtime_error("no process for a worker");
    if (pid == 0) {
      close(ends[0]);
      for (; next_[i] < end_; next_[i] += static_cast<std::int64_t>(workers_.size())) {
        limit(kSeconds);
        const std::string wrong = test_(next_[i]);
        if (!wrong.empty()) write_all(ends[1], fmt::format("{} {}", next_[i].load(), wrong) + '\0');
      }
      _exit(0);
    }
    close(ends[1]);
    workers_[i] = {pid, ends[0]};
  }

  void receive(std::size_t i) {
    Worker& w = workers_[i];
    char buffer[4096];
    const ssize_t n = read(w.from, buffer, sizeof(buffer));
    if (n > 0) {
      w.text.append(buffer, static_cast<std::size_t>(n));
      for (std::size_t at; (at = w.text.find('\0')) != std::string::npos; w.text.erase(0, at + 1)) {
        const std::size_t space = w.text.find(' ');
        failures.push_back({std::stoll(w.text.substr(0, space)), w.text.substr(space + 1, at - space - 1)});
      }
      return;
    }
    int status = 0;
    waitpid(w.pid, &status, 0);
    close(w.from);
    w = {};
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    failures.push_back({next_[i], death_of(status, kSeconds)});
    next_[i] += static_cast<std::int64_t>(workers_.size());
    if (next_[i] < end_) start(i);
  }

  std::int64_t end_;
  std::vector<Worker> workers_;
  const std::function<std::string(std::int64_t)>& test_;
  std::atomic<std::int64_t>* next_ = nullptr;
};

}  // namespace

Apart run_apart(const std::function<void(const Write&)>& test, unsigned seconds) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe for a test");
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("no process for a test");
  if (pid == 0) {
    close(ends[0]);
    limit(seconds);
    test([&](const std::string& text) { write_all(ends[1], text); });
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  return {text, WIFEXITED(status) && WEXITSTATUS(status) == 0 ? std::string() : death_of(status, seconds)};
}

std::vector<Failure> run_many(std::int64_t first, std::int64_t count, int workers,
                              const std::function<std::string(std::int64_t)>& test,
                              const std::function<void(std::int64_t, std::size_t)>& progress) {
  Pool pool(first, count, workers, test);
  while (pool.step()) progress(pool.done(first), pool.failures.size());
  std::ranges::sort(pool.failures, {}, &Failure::number);
  return pool.failures;
}

}  // namespace levin::fuzz
