// Tensors in memory that all ranks of a host map: in-place sums have the bits of other transports, wherever the tensors
// lie.
#include <levin/autograd/autograd.h>
#include <levin/distributed/distributed.h>
#include <levin/nn/nn.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "distributed/ddp_models.h"
#include "distributed/groups.h"
#include "distributed/ranks.h"
#include "support/small_cases.h"

using namespace levin;
using namespace levin::distributed;
using levin::test::bytes_of;
using levin::test::in_group;
using levin::test::pass_on_ranks;
using levin::test::run_on_ranks;

namespace {

bool all_ranks_see(const Tensor& t) {
  std::ifstream maps("/proc/self/maps");
  const auto address = reinterpret_cast<std::uintptr_t>(t.raw_data());
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> begin >> dash >> end;
    if (address >= begin && address < end) return line.find("memfd:levin-tensors") != std::string::npos;
  }
  return false;
}

// Returns this process's memory for such tensors in bytes.
int64_t bytes_in_use() {
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (read_symlink(entry, gone).string().find("memfd:levin-tensors") == std::string::npos) continue;
    struct stat status {};
    if (stat(entry.path().c_str(), &status) == 0) bytes += status.st_blocks * 512;
  }
  return bytes;
}

using Make = std::function<Tensor(ProcessGroup&, const Tensor&)>;  // returns a tensor with the same values

Tensor travels(ProcessGroup&, const Tensor& t) { return t.clone(); }
Tensor seen_by_all(ProcessGroup& group, const Tensor& t) {
  const Tensor seen = group.shared_empty(t.sizes(), {.dtype = t.dtype()});
  seen.copy_(t);
  return seen;
}
Tensor seen_by_some(ProcessGroup& group, const Tensor& t) {
  const Tensor seen = seen_by_all(group, t);
  return group.rank() == 1 ? t.clone() : seen;
}

// Returns this rank's results.
std::vector<std::vector<std::byte>> results_of(ProcessGroup& group, const Make& make) {
  std::vector<std::vector<std::byte>> results;
  Generator rng(static_cast<std::uint64_t>(group.rank()) + 3);
  const int64_t n = group.size();
  for (const DType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16, kInt32, kUInt8}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
      if (op == ReduceOp::avg && !is_floating(dtype)) continue;
      for (const int64_t numel : {int64_t{1}, 9'001 * n, int64_t{70'001}}) {
        const Tensor t = make(group, (randn({numel}, {.generator = &rng}) * 9).to(dtype));
        group.all_reduce(t, op).wait();
        results.push_back(bytes_of(t));
      }
      const Tensor in = make(group, randn({n, 5'003}, {.generator = &rng}).to(dtype)), before = in.clone();
      const Tensor out = empty({5'003}, {.dtype = dtype});
      group.reduce_scatter(out, in, op).wait();
      results.push_back(bytes_of(out));
      group.all_gather(in, out).wait();
      results.push_back(bytes_of(in));
    }
  }
  return results;
}

}  // namespace

TEST_CASE("shared tensors: in-place sums have the bits of copied ones, also if some ranks' tensors are not shared") {
  for (const int n : test::small_cases() ? std::vector{3} : std::vector{2, 3, 4}) {
    const auto results_by = [&](const Make& make, const std::string& transport) {
      std::vector<std::vector<std::vector<std::byte>>> of_rank(static_cast<std::size_t>(n));
      in_group(
          n, [&](ProcessGroup& g) { of_rank[static_cast<std::size_t>(g.rank())] = results_of(g, make); }, transport);
      return of_rank;
    };
    const auto expected = results_by(travels, "tcp");
    CHECK(results_by(seen_by_all, "shared") == expected);
    CHECK(results_by(seen_by_some, "shared") == expected);
    CHECK(results_by(seen_by_all, "tcp") == expected);
  }
}

TEST_CASE("shared tensors: NaN and signed zeros are reduced in the same order in place and on every transport") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto least_on = [&](const Make& make, const std::string& transport) {
    std::vector<std::vector<std::byte>> of_rank(2);
    const auto body = [&](ProcessGroup& group) {
      std::vector<float> values;
      for (int i = 0; i < 200'000; ++i) {
        const float own[] = {nan, 0.0F, -0.0F, 1.0F};
        values.push_back(own[(group.rank() == 0 ? i : i / 4) % 4]);
      }
      const Tensor t = make(group, from_data(values, {200'000}));
      group.all_reduce(t, ReduceOp::min).wait();
      of_rank[static_cast<std::size_t>(group.rank())] = bytes_of(t);
    };
    in_group(2, body, transport);
    CHECK(of_rank[0] == of_rank[1]);
    return of_rank[0];
  };
  const auto expected = least_on(travels, "shared");
  CHECK(least_on(seen_by_all, "shared") == expected);
  CHECK(least_on(travels, "tcp") == expected);
}

TEST_CASE("shared tensors: reduce_scatter does not modify its input") {
  in_group(3, [](ProcessGroup& group) {
    const Tensor in = seen_by_all(group, full({9'000}, group.rank() + 1.0)), out = empty({3'000});
    group.reduce_scatter(out, in).wait();
    CHECK(in.eq(group.rank() + 1.0).all().item<bool>());
    CHECK(out.eq(6.0).all().item<bool>());
  });
}

TEST_CASE("shared tensors: on processes, in buckets of ddp, and as ordinary tensors in a subgroup") {
  pass_on_ranks(3, [](ProcessGroup& group) {
    const Tensor t = group.shared_empty({100'000});
    REQUIRE(all_ranks_see(t));
    for (int i = 0; i < 20; ++i) {
      t.fill_(group.rank() + i);
      group.all_reduce(t).wait();
      CHECK(t.eq(3.0 * i + 3).all().item<bool>());
    }
    const auto pair = group.new_group({0, 2});
    if (pair) {
      t.fill_(group.rank());
      pair->all_reduce(t).wait();
      CHECK(t.eq(2.0).all().item<bool>());
    }
    manual_seed(1);
    nn::Sequential net(nn::Linear(100, 100));
    Reducer reducer(net.parameters(), test::shared(group), {});
    square(net(randn({4, 100}))).mean().backward();
    for (const auto& p : net.parameters()) CHECK(all_ranks_see(p.grad()));
  });
}

TEST_CASE("shared tensors: a rank that dies during an in-place sum ends the group on all") {
  const auto result = run_on_ranks(3, [](ProcessGroup& group) {
    const Tensor t = group.shared_empty({1'000'000});
    t.zero_();
    group.all_reduce(t).wait();
    if (group.rank() == 1) raise(SIGKILL);
    CHECK_THROWS_AS(group.all_reduce(t).wait(), RankLost);
    t.fill_(1.0);  // still mapped
    CHECK(group.shared_empty({5}).numel() == 5);
  });
  if (!result) return;
  INFO(result->output);
  const std::string& output = result->output;
  const auto first = output.find("Status: SUCCESS!");
  REQUIRE(first != std::string::npos);
  CHECK(output.find("Status: SUCCESS!", first + 1) != std::string::npos);
}

TEST_CASE("shared tensors: if the system refuses on one rank, all get ordinary tensors") {
  pass_on_ranks(2, [](ProcessGroup& group) {
    if (group.rank() == 1) {
      signal(SIGXFSZ, SIG_IGN);
      const rlimit none{.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
      setrlimit(RLIMIT_FSIZE, &none);
    }
    const Tensor t = group.shared_empty({10'000});
    const rlimit all{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &all);
    CHECK_FALSE(all_ranks_see(t));
    t.fill_(1.0);
    group.all_reduce(t).wait();
    CHECK(t.eq(2.0).all().item<bool>());
  });
}

TEST_CASE("shared tensors: where one rank cannot open another's memory, though all have their own, all have ordinary "
          "ones") {
  pass_on_ranks(2, [](ProcessGroup& group) {
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    if (group.rank() == 1) {
      const int next = dup(0);
      close(next);
      const rlimit one_more{.rlim_cur = static_cast<rlim_t>(next) + 1, .rlim_max = before.rlim_max};
      setrlimit(RLIMIT_NOFILE, &one_more);
    }
    const Tensor t = group.shared_empty({10'000});
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK_FALSE(all_ranks_see(t));
    group.all_reduce(t.fill_(1.0)).wait();
    CHECK(t.eq(2.0).all().item<bool>());
  });
}

TEST_CASE("shared tensors: other devices, no elements, a group of one and TCP give ordinary tensors") {
  const auto single = make_process_group("single");
  CHECK(single->shared_empty({3}, {.dtype = kFloat64}).dtype() == kFloat64);
  const auto over_tcp = [](ProcessGroup& group) {
    CHECK_FALSE(all_ranks_see(group.shared_empty({3})));
    group.barrier().wait();  // a rank that leaves at once would break the other's connection
  };
  in_group(2, over_tcp, "tcp");
  in_group(2, [](ProcessGroup& group) {
    CHECK(group.shared_empty({0, 4}).numel() == 0);
    CHECK(all_ranks_see(group.shared_empty({3})));
    CHECK_THROWS_AS(group.shared_empty({-3}), Error);
  });
}

TEST_CASE("shared tensors: memory is reused and freed, and lives as long as its tensors") {
  pass_on_ranks(2, [](ProcessGroup& group) {
    const auto before = bytes_in_use();
    Tensor a = group.shared_empty({25'000}), b = group.shared_empty({1'250'000}), c = group.shared_empty({1});
    const void* place = b.raw_data();
    CHECK((a.raw_data() < place && place < c.raw_data()));
    CHECK(bytes_in_use() >= before + 5'000'000);
    b = {};
    CHECK(bytes_in_use() < before + 1'000'000);
    b = group.shared_empty({1'300'000});
    CHECK(b.raw_data() > c.raw_data());
    b = group.shared_empty({1'000'000});
    CHECK(b.raw_data() == place);
    group.all_reduce(b.fill_(1.0)).wait();
    CHECK(b.eq(2.0).all().item<bool>());
  });
  std::vector<Tensor> outlive(2);
  in_group(2, [&](ProcessGroup& group) {
    Tensor& own = outlive[static_cast<std::size_t>(group.rank())];
    own = group.shared_empty({9'000});
    group.all_reduce(own.fill_(1.0)).wait();
  });
  for (const Tensor& t : outlive) CHECK(t.eq(2.0).all().item<bool>());
}
