#include <fmt/format.h>
#include <levin/distributed/rendezvous.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <thread>

#include "src/clock.h"

namespace levin::distributed {

namespace {

class Variables {
 public:
  explicit Variables(const Environment& env) : env_(env) {}

  // An empty variable counts as absent, as after `export RANK=`.
  bool has(const std::string& name) const {
    const auto entry = env_.find(name);
    return entry != env_.end() && !entry->second.empty();
  }
  std::string text(const std::string& name) const { return has(name) ? env_.at(name) : std::string(); }
  int number(const std::string& name, int smallest = 0) const {
    const std::string value = text(name);
    int result = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc{} || end != value.data() + value.size() || result < smallest) {
      throw RendezvousError(
          fmt::format("[rendezvous] {}=\"{}\" is not a whole number of {} or more.", name, value, smallest));
    }
    return result;
  }
  int number_or(const std::string& name, int otherwise) const { return has(name) ? number(name) : otherwise; }
  int port(const std::string& name) const {
    const int value = number(name, 1);
    if (value > 65535)
      throw RendezvousError(fmt::format("[rendezvous] {}={} is not a port; ports end at 65535.", name, value));
    return value;
  }

 private:
  const Environment& env_;
};

std::uint32_t fnv1a(const std::string& text) {
  std::uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

// Returns a port that differs between jobs on one machine, below the range of outgoing connections.
int port_of_job(const std::string& job) { return 15000 + static_cast<int>(fnv1a(job) % 10000u); }

int node_rank_of(const Variables& v, const RankOptions& options) {
  if (options.node_rank >= 0) return options.node_rank;
  return v.has("NODE_RANK") ? v.number("NODE_RANK") : v.number_or("GROUP_RANK", 0);
}

void read_env(const Variables& v, const RankOptions& options, RankInfo& info) {
  for (const char* name : {"RANK", "WORLD_SIZE"}) {
    if (!v.has(name)) {
      throw RendezvousError(fmt::format("[rendezvous] {} is set, but {} is not; env:// needs both.",
                                        v.has("RANK") ? "RANK" : "WORLD_SIZE", name));
    }
  }
  info.source = "RANK and WORLD_SIZE";
  info.rank = v.number("RANK");
  info.world_size = v.number("WORLD_SIZE", 1);
  info.node_rank = node_rank_of(v, options);
  if (v.has("LOCAL_WORLD_SIZE")) {
    info.local_world_size = v.number("LOCAL_WORLD_SIZE", 1);
  } else {
    info.local_world_size = options.num_nodes > 1 ? options.devices : info.world_size;
  }
  info.local_rank = v.number_or("LOCAL_RANK", info.rank % info.local_world_size);
}

void read_nodes(const Variables& v, const RankOptions& options, RankInfo& info) {
  info.source = "NODE_RANK and LOCAL_RANK";
  info.node_rank = node_rank_of(v, options);
  if (info.node_rank >= options.num_nodes) {
    throw RendezvousError(
        fmt::format("[rendezvous] this is node {} of {}; nodes count from 0. Check NODE_RANK and "
                    "--num-nodes.",
                    info.node_rank, options.num_nodes));
  }
  info.local_world_size = options.devices;
  info.local_rank = v.number_or("LOCAL_RANK", 0);
  info.rank = info.node_rank * options.devices + info.local_rank;
  info.world_size = options.num_nodes * options.devices;
  if (options.num_nodes > 1 && !v.has("MASTER_ADDR")) {
    throw RendezvousError(fmt::format("[rendezvous] {} nodes need MASTER_ADDR, the address of node 0, on each of them.",
                                      options.num_nodes));
  }
}

void read_open_mpi(const Variables& v, RankInfo& info) {
  info.source = "Open MPI's variables";
  info.rank = v.number("OMPI_COMM_WORLD_RANK");
  info.world_size = v.number("OMPI_COMM_WORLD_SIZE", 1);
  info.local_rank = v.number("OMPI_COMM_WORLD_LOCAL_RANK");
  info.local_world_size =
      v.has("OMPI_COMM_WORLD_LOCAL_SIZE") ? v.number("OMPI_COMM_WORLD_LOCAL_SIZE", 1) : info.world_size;
  info.node_rank = info.rank / info.local_world_size;
  const std::string job = v.text("PMIX_NAMESPACE") + v.text("OMPI_MCA_ess_base_jobid");
  if (!job.empty()) info.master_port = port_of_job(job);
  if (info.local_world_size < info.world_size && !v.has("MASTER_ADDR")) {
    throw RendezvousError(
        "[rendezvous] mpirun uses several machines, so MASTER_ADDR is needed: mpirun -x MASTER_ADDR=<host "
        "of rank 0> ...");
  }
}

void read_slurm(const Variables& v, RankInfo& info) {
  info.source = "SLURM's variables";
  info.rank = v.number("SLURM_PROCID");
  info.world_size = v.number("SLURM_NTASKS", 1);
  info.local_rank = v.number("SLURM_LOCALID");
  info.node_rank = v.number_or("SLURM_NODEID", 0);
  // The format is "4(x2),3": tasks on each node.
  std::string tasks = v.text("SLURM_STEP_TASKS_PER_NODE");
  if (tasks.empty()) tasks = v.text("SLURM_TASKS_PER_NODE");
  info.local_world_size = tasks.empty() ? info.world_size : std::max(1, std::atoi(tasks.c_str()));
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    if (!v.has(name)) continue;
    info.master_addr = first_host(v.text(name));
    break;
  }
  if (v.has("SLURM_JOB_ID")) info.master_port = port_of_job(v.text("SLURM_JOB_ID"));
}

void check(const RankInfo& info) {
  if (info.rank >= info.world_size) {
    throw RendezvousError(
        fmt::format("[rendezvous] rank {} of {} does not exist; ranks count from 0. It was read from {}.", info.rank,
                    info.world_size, info.source));
  }
  if (info.local_rank >= info.local_world_size) {
    throw RendezvousError(
        fmt::format("[rendezvous] local rank {} of {} does not exist; local ranks count from 0. It was "
                    "read from {}.",
                    info.local_rank, info.local_world_size, info.source));
  }
}

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

Environment environment() {
  Environment env;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos) env.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return env;
}

RankInfo rank_info(const Environment& env, const RankOptions& options) {
  const Variables v(env);
  RankInfo info;
  if (v.has("RANK") || v.has("WORLD_SIZE")) {
    read_env(v, options, info);
  } else if (options.num_nodes > 1 || (options.devices > 1 && v.has("LOCAL_RANK"))) {
    read_nodes(v, options, info);
  } else if (v.has("OMPI_COMM_WORLD_RANK")) {
    read_open_mpi(v, info);
  } else if (v.has("SLURM_PROCID") && v.has("SLURM_NTASKS")) {
    read_slurm(v, info);
  }
  check(info);
  if (v.has("MASTER_ADDR")) info.master_addr = v.text("MASTER_ADDR");
  if (v.has("MASTER_PORT")) info.master_port = v.port("MASTER_PORT");
  info.store_port = info.master_port;
  if (v.has("LEVIN_STORE_PORT")) {
    info.store_port = v.port("LEVIN_STORE_PORT");
  } else if (v.text("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    info.store_port = info.master_port < 65535 ? info.master_port + 1 : info.master_port - 1;
  }
  return info;
}

bool has_launcher(const Environment& env) {
  const Variables v(env);
  // A job's script outside of srun also has SLURM's variables, of one task.
  const bool step = v.has("SLURM_PROCID") && v.has("SLURM_NTASKS") && v.text("SLURM_NTASKS") != "1";
  return v.has("RANK") || v.has("WORLD_SIZE") || v.has("LOCAL_RANK") || v.has("OMPI_COMM_WORLD_RANK") || step;
}

std::string first_host(const std::string& host_list) {
  std::string host;
  for (std::size_t i = 0; i < host_list.size() && host_list[i] != ','; ++i) {
    if (host_list[i] != '[') {
      host += host_list[i];
      continue;
    }
    const auto close = host_list.find(']', i);
    const auto end = host_list.find_first_of(",-]", i);
    if (close == std::string::npos || end == i + 1) {
      throw RendezvousError(fmt::format("[rendezvous] the host list \"{}\" cannot be read.", host_list));
    }
    host += host_list.substr(i + 1, end - i - 1);
    i = close;
  }
  if (host.empty()) throw RendezvousError(fmt::format("[rendezvous] the host list \"{}\" cannot be read.", host_list));
  return host;
}

std::shared_ptr<Store> open_store(const RankInfo& info, const std::string& address, Duration timeout) {
  const auto tcp = [&](const std::string& host, int port) {
    return std::make_shared<TcpStore>(host, port, TcpStoreOptions{.server = info.rank == 0, .timeout = timeout});
  };
  if (address == "env://") return tcp(info.master_addr, info.store_port);
  if (address.starts_with("file://") && address.size() > 7)
    return std::make_shared<FileStore>(address.substr(7), timeout);
  const auto colon = address.rfind(':');
  if (address.starts_with("tcp://") && colon > 6) {
    return tcp(address.substr(6, colon - 6), Variables({{"port", address.substr(colon + 1)}}).port("port"));
  }
  throw RendezvousError(fmt::format(
      "[rendezvous] \"{}\" is not a store address. Give env://, tcp://host:port or file:///path.", address));
}

namespace {

constexpr const char* kGivenUp = "join/given_up";
constexpr Milliseconds kLook(200);  // interval at which a waiting rank checks if another has given up

// The first rank that gives up sets the reason for all: ranks that came later would wait longer, and lose the store
// when rank 0 ends.
[[noreturn]] void give_up(Store& store, const RankInfo& info, const std::string& why) {
  const std::string said = store.compare_set(kGivenUp, "", why);
  if (info.rank == 0) std::this_thread::sleep_for(3 * kLook);
  throw RendezvousError(said);
}

void wait_for_all(Store& store, const RankInfo& info, Milliseconds limit) {
  std::vector<std::string> all;
  for (int r = 0; r < info.world_size; ++r) all.push_back(fmt::format("join/rank/{}", r));
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    const auto waited = std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - start);
    const auto missing = store.wait_missing(all, std::clamp(limit - waited, Milliseconds(0), kLook));
    if (missing.empty()) return;
    if (const auto said = store.try_get(kGivenUp)) give_up(store, info, *said);
    if (waited < limit) continue;
    std::string names;
    for (const std::string& key : missing) names += (names.empty() ? "" : ", ") + key.substr(10);
    give_up(store, info,
            fmt::format("[join] {} of {} ranks did not join {} within {} s: rank {}. Were they started, with "
                        "this MASTER_ADDR and MASTER_PORT?",
                        missing.size(), info.world_size, store.address(), static_cast<double>(limit.count()) / 1000.0,
                        names));
  }
}

}  // namespace

void join(Store& store, const RankInfo& info, std::optional<Duration> timeout) {
  const Milliseconds limit = timeout.value_or(store.timeout());
  const std::string size = fmt::format("{} (rank {})", info.world_size, info.rank);
  const std::string first = store.compare_set("join/world_size", "", size);
  if (std::atoi(first.c_str()) != info.world_size) {
    throw RendezvousError(
        fmt::format("[join] rank {} has a world size of {}, but another rank has {}. Start all ranks "
                    "with the same number.",
                    info.rank, info.world_size, first));
  }
  const std::string own_name = fmt::format("process {} on {}", getpid(), host_name());
  const std::string own = fmt::format("{} #{}", own_name, store.add("join/arrivals", 1));
  const std::string holder = store.compare_set(fmt::format("join/rank/{}", info.rank), "", own);
  if (holder != own) {
    throw RendezvousError(
        fmt::format("[join] two processes call themselves rank {}: {} and {}. Give each its own RANK; if "
                    "{} is left from an earlier job, remove it.",
                    info.rank, holder.substr(0, holder.find(" #")), own_name, store.address()));
  }
  wait_for_all(store, info, limit);
}

}  // namespace levin::distributed
