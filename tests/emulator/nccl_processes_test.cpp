// Ranks in threads and in processes: the test is rank 0 and starts this program again for the others.

#include "nccl_fixture.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

extern char** environ;

namespace levin::emulator {
namespace {

constexpr std::size_t kCount = 50000;  // several chunks per rank
constexpr const char* kChild = "nccl processes: (a rank that another test starts)";

/// One rank with its buffer.
struct Rank {
  Rank(int rank, int ranks, const ncclUniqueId& id, int device)
      : values(device, numbers<float>(rank, kCount)), stream(make_stream(device)) {
    REQUIRE_NCCL(ncclCommInitRank(&comm, ranks, id, rank));
  }
  ~Rank() {
    if (comm) ncclCommDestroy(comm);
    cudaStreamDestroy(stream);
  }
  static cudaStream_t make_stream(int device) {
    cudaStream_t made = nullptr;
    cudaSetDevice(device);
    CHECK_OK(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    return made;
  }
  ncclResult_t call(ncclRedOp_t op = ncclSum) {
    return ncclAllReduce(values.data, values.data, kCount, ncclFloat32, op, comm, stream);
  }
  ncclResult_t after_wait() {
    CHECK_OK(cudaStreamSynchronize(stream));
    ncclResult_t code = ncclSuccess;
    CHECK_NCCL(ncclCommGetAsyncError(comm, &code));
    return code;
  }

  ncclComm_t comm = nullptr;
  Values<float> values;
  cudaStream_t stream;
};

/// Runs two all-reduces, the second on the results of the first.
void sum_twice(Rank& rank, int ranks) {
  CHECK_NCCL(rank.call());
  CHECK_NCCL(rank.call(ncclAvg));
  CHECK_NCCL(rank.after_wait());
  std::vector<std::vector<float>> inputs = inputs_of<float>(ranks, kCount);
  for (const ncclRedOp_t op : {ncclSum, ncclAvg}) {
    std::vector<float> result(kCount);
    for (std::size_t i = 0; i < kCount; ++i) result[i] = reduced(inputs, i, owner_of(i, kCount, 4, ranks), op);
    inputs.assign(static_cast<std::size_t>(ranks), result);
  }
  CHECK(same_bits(rank.values.read(), inputs[0]));
}

std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text ? text : "";
}

TEST_CASE("nccl processes: (a rank that another test starts)") {
  const std::string task = variable("LEVIN_TEST_TASK");
  if (task.empty()) return;  // not started by a test
  const int number = std::atoi(variable("LEVIN_TEST_RANK").c_str()),
            ranks = std::atoi(variable("LEVIN_TEST_RANKS").c_str());
  ncclUniqueId id{};
  variable("LEVIN_TEST_ID").copy(id.internal, sizeof(id.internal));
  if (task == "never comes") return;
  Rank rank(number, ranks, id, 0);
  if (task == "sums") sum_twice(rank, ranks);
  if (task == "differs") {
    CHECK_NCCL(rank.call(ncclMax));
    CHECK_EQ(rank.after_wait(), ncclInvalidUsage);
  }
  if (task == "does not wait") {  // the other rank's all-reduce must need no more than this call
    CHECK_NCCL(rank.call());
    char byte = 0;
    CHECK_EQ(read(STDIN_FILENO, &byte, 1), 1);
    CHECK_NCCL(rank.after_wait());
  }
  if (task == "is killed" || task == "exits") {
    CHECK_NCCL(rank.call());
    CHECK_NCCL(rank.after_wait());
    if (task == "exits") _exit(0);
    raise(SIGKILL);
  }
  if (task == "is killed in its wait") {
    CHECK_NCCL(rank.call());
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      raise(SIGKILL);
    }).detach();
    rank.after_wait();
  }
  if (task == "hears of a death") CHECK_EQ((rank.call(), rank.after_wait()), ncclRemoteError);
}

/// A child process and its standard input.
struct Child {
  Child(const char* task, int rank, int ranks, const ncclUniqueId& id) {
    setenv("LEVIN_TEST_TASK", task, 1);
    setenv("LEVIN_TEST_RANK", std::to_string(rank).c_str(), 1);
    setenv("LEVIN_TEST_RANKS", std::to_string(ranks).c_str(), 1);
    setenv("LEVIN_TEST_ID", id.internal, 1);
    int ends[2];
    REQUIRE_EQ(pipe(ends), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    std::string program = "/proc/self/exe", filter = std::string("-tc=") + kChild, quiet = "-m";
    char* arguments[] = {program.data(), filter.data(), quiet.data(), nullptr};
    REQUIRE_EQ(posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    input = ends[1];
    unsetenv("LEVIN_TEST_TASK");
  }
  ~Child() {
    if (pid > 0) end();
    close(input);
  }
  /// Returns its exit status, or -signal if one ended it.
  int end() {
    int status = 0;
    waitpid(std::exchange(pid, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  pid_t pid = 0;
  int input = -1;
};

ncclUniqueId new_id() {
  ncclUniqueId id;
  REQUIRE_NCCL(ncclGetUniqueId(&id));
  return id;
}

/// Returns whether the ranks' shared memory still has a name.
bool has_name(const ncclUniqueId& id) {
  return std::filesystem::exists("/dev/shm/levin_nccl_" + std::string(id.internal).substr(std::strlen("levin-nccl-")));
}

TEST_CASE("nccl processes: ranks in threads of one process") {
  const FreshDevices fresh(3);
  const ncclUniqueId id = new_id();
  std::vector<std::thread> threads;
  for (int r = 0; r < 3; ++r) {
    threads.emplace_back([r, &id] {
      Rank rank(r, 3, id, r);
      sum_twice(rank, 3);
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST_CASE("nccl processes: ranks in processes give the same bits and leave nothing behind") {
  const FreshDevices fresh;
  const ncclUniqueId id = new_id();
  Child one("sums", 1, 3, id), two("sums", 2, 3, id);
  {
    Rank rank(0, 3, id, 0);
    sum_twice(rank, 3);
    CHECK_FALSE(has_name(id));
  }
  CHECK_EQ(one.end(), 0);
  CHECK_EQ(two.end(), 0);
}

TEST_CASE("nccl processes: two ranks in threads and one in a process") {
  const FreshDevices fresh(2);
  const ncclUniqueId id = new_id();
  Child two("sums", 2, 3, id);
  std::thread other([&] {
    Rank rank(1, 3, id, 1);
    sum_twice(rank, 3);
  });
  {
    Rank rank(0, 3, id, 0);
    sum_twice(rank, 3);
  }
  other.join();
  CHECK_EQ(two.end(), 0);
}

TEST_CASE("nccl processes: a rank that has made its call need not wait for others to proceed") {
  const FreshDevices fresh;
  const ncclUniqueId id = new_id();
  Child one("does not wait", 1, 2, id);
  Rank rank(0, 2, id, 0);
  CHECK_NCCL(rank.call());
  CHECK_NCCL(rank.after_wait());
  CHECK_EQ(write(one.input, "x", 1), 1);
  CHECK_EQ(one.end(), 0);
}

TEST_CASE("nccl processes: calls that differ end on both sides") {
  const FreshDevices fresh;
  const ncclUniqueId id = new_id();
  Child one("differs", 1, 2, id);
  Rank rank(0, 2, id, 0);
  CHECK_NCCL(rank.call());
  CHECK_EQ(rank.after_wait(), ncclInvalidUsage);
  CHECK(comm_says(rank.comm, "but rank 1 calls ncclAllReduce as collective 1 (count 50000, ncclFloat32, ncclMax)"));
  CHECK_EQ(one.end(), 0);
}

TEST_CASE("nccl processes: a process that ends is a remote error for all others") {
  const FreshDevices fresh;
  const ncclUniqueId id = new_id();
  const char* task = "";
  int status = -SIGKILL;
  SUBCASE("between collectives") { task = "is killed"; }
  SUBCASE("without destroying its communicator") { task = "exits", status = 0; }
  Child one(task, 1, 2, id);
  Rank rank(0, 2, id, 0);
  CHECK_NCCL(rank.call());
  rank.after_wait();
  CHECK_EQ(one.end(), status);
  ncclResult_t last = rank.call();  // the end may already have been noticed
  if (last == ncclSuccess) last = rank.after_wait();
  CHECK_EQ(last, ncclRemoteError);
  CHECK(comm_says(rank.comm, "rank 1 (process "));
  CHECK(comm_says(rank.comm, ") ended without ncclCommDestroy."));
}

TEST_CASE("nccl processes: if a waiting process is killed, no rank waits forever") {
  const FreshDevices fresh;
  const ncclUniqueId id = new_id();
  Child one("is killed in its wait", 1, 3, id), two("hears of a death", 2, 3, id);
  Rank rank(0, 3, id, 0);
  CHECK_EQ(one.end(), -SIGKILL);
  ncclResult_t last = rank.call();
  if (last == ncclSuccess) last = rank.after_wait();
  CHECK_EQ(last, ncclRemoteError);
  CHECK_EQ(two.end(), 0);
}

TEST_CASE("nccl processes: a rank never arrives, and the memory is freed with the last rank") {
  const FreshDevices fresh;
  setenv("LEVIN_EMULATED_NCCL_TIMEOUT", "1", 1);
  const ncclUniqueId id = new_id();
  Child one("never comes", 1, 2, id);
  ncclComm_t comm = nullptr;
  CHECK_EQ(ncclCommInitRank(&comm, 2, id, 0), ncclRemoteError);
  CHECK(comm_says(nullptr, "rank 1 did not come within 1 s"));
  CHECK_EQ(one.end(), 0);
  CHECK_FALSE(has_name(id));
  unsetenv("LEVIN_EMULATED_NCCL_TIMEOUT");
}

}  // namespace
}  // namespace levin::emulator
