// A process's rank is a function of the environment; missing ranks are found through the store.
#include <doctest/doctest.h>
#include <levin/distributed/launcher.h>
#include <levin/distributed/rendezvous.h>

#include "distributed/threads.h"
#include "support/files.h"

using namespace levin::distributed;
using namespace std::chrono_literals;
using levin::test::errors_on_threads;

namespace {

std::string error_of(const Environment& env, const RankOptions& options = {}) {
  try {
    rank_info(env, options);
  } catch (const RendezvousError& e) {
    return e.what();
  }
  return "nothing was thrown";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void check_rank(const RankInfo& info, int rank, int world, int local, int local_world, int node) {
  CAPTURE(info.source);
  CHECK(info.rank == rank);
  CHECK(info.world_size == world);
  CHECK(info.local_rank == local);
  CHECK(info.local_world_size == local_world);
  CHECK(info.node_rank == node);
}

Environment with(Environment base, const Environment& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

}  // namespace

TEST_CASE("rank: nothing is set") {
  const RankInfo info = rank_info({});
  check_rank(info, 0, 1, 0, 1, 0);
  CHECK(info.master_addr == "127.0.0.1");
  CHECK(info.store_port == 29500);
}

TEST_CASE("rank: env://") {
  check_rank(rank_info({{"RANK", "2"}, {"WORLD_SIZE", "3"}}), 2, 3, 2, 3, 0);
  const RankInfo info = rank_info({{"RANK", "5"},
                                   {"WORLD_SIZE", "8"},
                                   {"LOCAL_RANK", "1"},
                                   {"LOCAL_WORLD_SIZE", "4"},
                                   {"NODE_RANK", "1"},
                                   {"MASTER_ADDR", "10.0.0.7"},
                                   {"MASTER_PORT", "4711"}});
  check_rank(info, 5, 8, 1, 4, 1);
  CHECK(info.master_addr == "10.0.0.7");
  CHECK(info.master_port == 4711);
  CHECK(info.store_port == 4711);
}

TEST_CASE("rank: three machines with three exported variables") {
  const Environment exports = {{"MASTER_ADDR", "10.0.0.7"}, {"MASTER_PORT", "1234"}};
  for (int node = 0; node < 3; ++node) {
    const auto env = with(exports, {{"NODE_RANK", std::to_string(node)}});
    check_rank(rank_info(env, {.num_nodes = 3, .devices = 1}), node, 3, 0, 1, node);
    check_rank(rank_info(with(env, {{"LOCAL_RANK", "1"}}), {.num_nodes = 3, .devices = 2}), 2 * node + 1, 6, 1, 2,
               node);
  }
  check_rank(rank_info(exports, {.num_nodes = 3, .devices = 2, .node_rank = 2}), 4, 6, 0, 2, 2);
  check_rank(rank_info({{"LOCAL_RANK", "3"}}, {.devices = 4}), 3, 4, 3, 4, 0);
  CHECK(says(error_of({{"NODE_RANK", "1"}}, {.num_nodes = 2}), "2 nodes need MASTER_ADDR"));
  CHECK(says(error_of(with(exports, {{"NODE_RANK", "3"}}), {.num_nodes = 3}),
             "this is node 3 of 3; nodes count from 0."));
}

TEST_CASE("rank: torchrun, whose agent listens on MASTER_PORT") {
  const Environment torchrun = {
      {"RANK", "3"},       {"WORLD_SIZE", "4"},   {"LOCAL_RANK", "1"},      {"LOCAL_WORLD_SIZE", "2"},
      {"GROUP_RANK", "1"}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29400"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  check_rank(rank_info(torchrun), 3, 4, 1, 2, 1);
  CHECK(rank_info(torchrun).master_port == 29400);
  CHECK(rank_info(torchrun).store_port == 29401);
  CHECK(rank_info(with(torchrun, {{"MASTER_PORT", "65535"}})).store_port == 65534);
  CHECK(rank_info(with(torchrun, {{"LEVIN_STORE_PORT", "7000"}})).store_port == 7000);
  CHECK(rank_info(with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).store_port == 29400);
}

TEST_CASE("rank: mpirun") {
  const Environment mpi = {{"OMPI_COMM_WORLD_RANK", "1"},       {"OMPI_COMM_WORLD_SIZE", "2"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                           {"OMPI_COMM_WORLD_NODE_RANK", "1"},  {"PMIX_NAMESPACE", "1234"}};
  const RankInfo info = rank_info(mpi);
  check_rank(info, 1, 2, 1, 2, 0);
  CHECK(info.store_port >= 15000);
  CHECK(info.store_port < 25000);
  CHECK(info.store_port != rank_info(with(mpi, {{"PMIX_NAMESPACE", "1235"}})).store_port);
  CHECK(rank_info(with(mpi, {{"MASTER_PORT", "3000"}})).store_port == 3000);
  const auto far = with(mpi, {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}});
  CHECK(says(error_of(far), "mpirun -x MASTER_ADDR="));
  check_rank(rank_info(with(far, {{"MASTER_ADDR", "n1"}})), 3, 4, 1, 2, 1);
}

TEST_CASE("rank: srun") {
  const Environment slurm = {{"SLURM_PROCID", "5"},
                             {"SLURM_NTASKS", "8"},
                             {"SLURM_LOCALID", "1"},
                             {"SLURM_NODEID", "1"},
                             {"SLURM_TASKS_PER_NODE", "4(x2)"},
                             {"SLURM_JOB_NODELIST", "gpu[07-08]"},
                             {"SLURM_JOB_ID", "123456"}};
  const RankInfo info = rank_info(slurm);
  check_rank(info, 5, 8, 1, 4, 1);
  CHECK(info.master_addr == "gpu07");
  CHECK(info.store_port != rank_info(with(slurm, {{"SLURM_JOB_ID", "123457"}})).store_port);
  CHECK(rank_info(with(slurm, {{"SLURM_STEP_NODELIST", "gpu08"}})).master_addr == "gpu08");
  CHECK(rank_info(with(slurm, {{"MASTER_ADDR", "10.1.1.1"}})).master_addr == "10.1.1.1");
  check_rank(rank_info(with(slurm, {{"RANK", "0"}, {"WORLD_SIZE", "1"}})), 0, 1, 0, 1, 0);  // env:// has priority
}

TEST_CASE("first host of a list") {
  CHECK(first_host("a") == "a");
  CHECK(first_host("a,b") == "a");
  CHECK(first_host("gpu[3]") == "gpu3");
  CHECK(first_host("gpu[007-009,12],cpu1") == "gpu007");
  CHECK(first_host("gpu[12,1-4]-ib,x") == "gpu12-ib");
  CHECK(first_host("r[1-2]n[03-04]") == "r1n03");
  for (const char* bad : {"", ",a", "gpu[", "gpu[]", "gpu[1-2"}) CHECK_THROWS_AS(first_host(bad), RendezvousError);
}

TEST_CASE("rank: an invalid variable is named with its value") {
  CHECK(says(error_of({{"RANK", "1"}}), "RANK is set, but WORLD_SIZE is not"));
  CHECK(says(error_of({{"RANK", ""}, {"WORLD_SIZE", "2"}}), "WORLD_SIZE is set, but RANK is not"));
  CHECK(says(error_of({{"RANK", "one"}, {"WORLD_SIZE", "2"}}), "RANK=\"one\" is not a whole number of 0 or more."));
  CHECK(says(error_of({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}), "RANK=\"-1\""));
  CHECK(says(error_of({{"RANK", "0"}, {"WORLD_SIZE", "0"}}), "WORLD_SIZE=\"0\" is not a whole number of 1 or more."));
  CHECK(says(error_of({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), "rank 2 of 2 does not exist"));
  CHECK(says(error_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}}), "local rank 2 of 2"));
  CHECK(says(error_of({{"MASTER_PORT", "70000"}}), "MASTER_PORT=70000 is not a port"));
  CHECK(says(error_of({{"MASTER_PORT", "12x"}}), "MASTER_PORT=\"12x\""));
}

TEST_CASE("join: all ranks join, by tcp and by file") {
  const levin::test::TempDir dir;
  const HeldPort held;
  const int port = held.number();
  for (const std::string& address : {std::string("env://"), "file://" + (dir.path / "meet").string()}) {
    const auto errors = errors_on_threads(3, [&](int rank) {
      const RankInfo info{.rank = rank, .world_size = 3, .store_port = port};
      const auto store = open_store(info, address);
      join(*store, info);
      CHECK(store->keys("join/rank/").size() == 3);
      store->add("left", 1);
      while (rank == 0 && store->get("left") != "3") std::this_thread::yield();
    });
    for (const std::string& e : errors) CHECK(e == "");
  }
}

TEST_CASE("join: missing ranks, different world sizes and duplicates are named") {
  const levin::test::TempDir dir;
  FileStore store(dir.path / "meet");
  const auto join_as = [&](int rank, int size) {
    try {
      join(store, {.rank = rank, .world_size = size}, 1ms);
    } catch (const RendezvousError& e) {
      return std::string(e.what());
    }
    return std::string("joined");
  };
  CHECK(says(join_as(1, 4), "3 of 4 ranks did not join " + store.address() + " within 0.001 s: rank 0, 2, 3."));
  CHECK(says(join_as(2, 3), "rank 2 has a world size of 3, but another rank has 4 (rank 1)."));
  CHECK(says(join_as(1, 4), "two processes call themselves rank 1"));
  CHECK(says(join_as(0, 4), "3 of 4 ranks"));  // rank 1 has given up and no longer waits
}

TEST_CASE("join: when the first rank times out, ranks that would wait longer fail with the same message") {
  const HeldPort held;
  const int port = held.number();
  const auto errors = errors_on_threads(2, [&](int rank) {
    const RankInfo info{.rank = rank, .world_size = 3, .store_port = port};
    const auto store = open_store(info, "env://", 10s);
    join(*store, info, rank == 0 ? 400ms : 60s);
  });
  for (const std::string& e : errors) CHECK_MESSAGE(says(e, "1 of 3 ranks did not join"), e);
  for (const std::string& e : errors) CHECK_MESSAGE(says(e, "within 0.4 s: rank 2."), e);
}

TEST_CASE("open_store: an invalid address") {
  for (const char* address : {"", "file://", "tcp://host", "http://host:1", "tcp://host:x"}) {
    CHECK_THROWS_AS(open_store({}, address), RendezvousError);
  }
}
