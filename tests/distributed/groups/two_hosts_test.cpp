// Two machines, simulated by two network namespaces with a cable between them: both train by hand, then the cable is
// cut.
#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>
#include <levin/core/io.h>
#include <levin/distributed/ddp.h>
#include <levin/distributed/rendezvous.h>
#include <levin/nn/nn.h>
#include <levin/optim/optim.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "support/files.h"

using namespace levin;
using namespace levin::distributed;
using namespace std::chrono_literals;
using Time = std::chrono::steady_clock;

namespace {

constexpr auto kLimit = 10s;  // from the cut to the end of both; keep-alive takes 4 s

bool ip(const std::string& arguments) { return std::system(("ip " + arguments + " >/dev/null 2>&1").c_str()) == 0; }

class TwoHosts {
 public:
  TwoHosts() {
    usable_ = geteuid() == 0 && ip("netns add " + host(0)) && ip("netns add " + host(1)) &&
              ip("link add cable0 netns " + host(0) + " type veth peer name cable1 netns " + host(1));
    for (const int i : {0, 1}) {
      const std::string cable = " dev cable" + std::to_string(i), here = "-n " + host(i);
      usable_ = usable_ && ip(here + " addr add " + address(i) + "/24" + cable) && ip(here + " link set up" + cable) &&
                ip(here + " link set lo up");
    }
  }
  ~TwoHosts() {  // also removes the cable
    for (const int i : {0, 1}) ip("netns del " + host(i));
  }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  bool usable() const { return usable_; }
  static std::string host(int i) { return "levin-" + std::to_string(getpid()) + "-" + std::to_string(i); }
  static std::string address(int i) { return "10.99.0." + std::to_string(i + 1); }
  bool cut() const { return ip("-n " + host(0) + " link set down dev cable0"); }

 private:
  bool usable_ = false;
};

Tensor loss_of(const Tensor& y) { return mean(square(sub(y, 1.0))); }

// A program that trains without the Trainer and never ends by itself.
void train_on_this_host() {
  const RankInfo me = rank_info(environment(), {.num_nodes = 2});
  const auto store = open_store(me, "env://", 30s);
  join(*store, me, 30s);
  const auto group =
      make_process_group("gloo", {.store = store, .rank = me.rank, .world_size = me.world_size, .timeout = 60s});
  manual_seed(static_cast<std::uint64_t>(1 + me.rank));  // rank 0's parameters are broadcast
  nn::Linear net(6, 3);
  DistributedDataParallel ddp(net, group);
  optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  nn::Linear alone = nn::clone(net);
  optim::SGD other(alone.parameters(), {.lr = 0.1, .momentum = 0.9});
  Generator rng(5);
  for (int step = 0;; ++step) {
    const Tensor x = randn({8, 6}, {.generator = &rng});
    sgd.zero_grad();
    loss_of(ddp(x.narrow(0, me.rank * 4, 4))).backward();
    sgd.step();
    if (step > 20) continue;
    other.zero_grad();
    loss_of(alone(x)).backward();
    other.step();
    if (step < 20) continue;
    CHECK(amax(abs(sub(net.weight.detach(), alone.weight.detach()))).item<double>() < 1e-6);
    ddp.check_parameters();
    std::cout << "trained as one rank of " << me.world_size << " at " << me.master_addr << std::endl;
  }
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("two hosts train as one rank; when their link is cut, both end with one error") {
  if (std::getenv("LEVIN_TEST_HOST")) {
    try {
      train_on_this_host();
    } catch (const std::exception& e) {
      std::cout << "error: " << e.what() << std::endl;
      std::_Exit(1);
    }
  }
  const TwoHosts hosts;
  if (!hosts.usable()) {
    std::cout << "SKIP: root" << std::endl;
    return;
  }
  const test::TempDir dir;
  const auto program = std::filesystem::read_symlink("/proc/self/exe").string();
  struct Host {
    std::filesystem::path file;
    std::thread thread;
    int status = -1;
    Time::time_point end;
    std::string said() const { return std::filesystem::exists(file) ? io::read_text(file) : std::string(); }
  };
  std::array<Host, 2> both;
  for (const int i : {0, 1}) {
    Host& host = both[static_cast<std::size_t>(i)];
    host.file = dir.path / std::to_string(i);
    const std::string command = "timeout -k 5 90 ip netns exec " + hosts.host(i) +
                                " env LEVIN_TEST_HOST=1 NODE_RANK=" + std::to_string(i) +
                                " LOCAL_RANK=0 MASTER_PORT=29517 MASTER_ADDR=" + hosts.address(0) + " " + program +
                                " --test-case='two hosts train*' >" + host.file.string() + " 2>&1";
    host.thread = std::thread([&host, command] {
      const int status = std::system(command.c_str());
      host.end = Time::now();
      host.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    });
  }
  const auto trained = [&] {
    return count(both[0].said(), "trained as one rank of 2 at 10.99.0.1") == 1 &&
           count(both[1].said(), "trained as one rank of 2 at 10.99.0.1") == 1;
  };
  for (const auto until = Time::now() + 60s; !trained() && Time::now() < until;) std::this_thread::sleep_for(20ms);
  CHECK(trained());
  const auto start = Time::now();
  CHECK(hosts.cut());
  for (Host& host : both) host.thread.join();
  for (const std::size_t i : {0u, 1u}) {
    const std::string said = both[i].said();
    INFO(said);
    CHECK(both[i].status == 1);
    CHECK(both[i].end - start < kLimit);
    CHECK(count(said, "error: ") == 1);
    CHECK(count(said, "rank " + std::to_string(1 - i) + " is lost: its connection closed") == 1);
  }
}
