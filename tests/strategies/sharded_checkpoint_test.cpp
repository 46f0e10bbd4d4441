// Checkpoints of which each rank writes its shard.
#include <levin/trainer/checkpoint/checkpoint.h>
#include <levin/trainer/checkpoint/sharded_checkpoint.h>

#include <filesystem>

#include "distributed/groups.h"
#include "strategies/sharded_fits.h"

using namespace levin;
using namespace levin::distributed;
using namespace levin::test;

namespace {

struct Net : nn::Module {
  nn::Linear& a = add<nn::Linear>("a", 6, 11);
  nn::BatchNorm2d& n = add<nn::BatchNorm2d>("n", 11);
  nn::Linear& b = add<nn::Linear>("b", 11, 3);
  Tensor forward(const Tensor& x) override { return b(relu(n(a(x).view({-1, 11, 1, 1})).view({-1, 11}))); }
};

std::shared_ptr<ProcessGroup> borrow(ProcessGroup& group) {
  return {&group, [](ProcessGroup*) {}};
}

void on(int n, const GroupBody& body) { n == 1 ? body(*make_process_group("single")) : in_group(n, body); }

/// Returns the weights after more steps from the state in a folder, or from the start; saves into another folder.
std::vector<std::vector<float>> run(int n, int steps, const std::filesystem::path& from,
                                    const std::filesystem::path& to, std::int64_t min_elements = 20) {
  std::vector<std::vector<float>> result;
  on(n, [&](ProcessGroup& group) {
    Net net;
    {
      const no_grad guard;
      Generator rng(3);
      for (const Parameter& p : net.parameters()) p.copy_(randn(p.sizes(), {.generator = &rng}) * 0.3);
    }
    net.eval();  // its statistics are saved all the same
    FullyShardedDataParallel fsdp(net, borrow(group), {.min_elements = min_elements});
    optim::AdamW adam(fsdp.parameters(), {.lr = 0.02});
    if (!from.empty()) {
      net.named_buffers()[0].second.fill_(7.0);
      load_sharded_checkpoint(from, fsdp, adam);
      for (const float v : net.named_buffers()[0].second.to_vector<float>()) CHECK(v == 0.0f);
    }
    for (int s = 0; s < steps; ++s) {
      const data::TensorDataset points = toy_points(12, 5);
      const Tensor x = points.tensors()[0], y = points.tensors()[1];
      const std::int64_t each = 12 / n;
      adam.zero_grad();
      cross_entropy(fsdp(x.narrow(0, group.rank() * each, each)), y.narrow(0, group.rank() * each, each)).backward();
      adam.step();
    }
    if (!to.empty()) save_sharded_checkpoint(to, fsdp, adam, group);
    fsdp.unshard();
    if (group.rank() == 0) result = values_of(net);
  });
  return result;
}

}  // namespace

TEST_CASE("sharded checkpoint: saved by 4 ranks, it resumes on 4 bit for bit, and on 2, 1 and 3 with other units") {
  const TempDir dir;
  const auto saved = dir.path / "four";
  run(4, 3, {}, saved);
  for (int r = 0; r < 4; ++r)
    CHECK(std::filesystem::exists(saved / ("part-" + std::to_string(r) + "-of-4.safetensors")));
  CHECK_FALSE(std::filesystem::exists(saved / "part-4-of-4.safetensors"));
  const auto whole = run(4, 6, {}, {});
  CHECK(run(4, 3, saved, {}) == whole);
  for (const int n : {1, 2, 3}) CHECK(largest_difference(run(n, 3, saved, {}, n == 2 ? 1000 : 30), whole) <= 1e-5);
  // Resumes from one rank on more.
  run(1, 3, {}, dir.path / "one");
  CHECK(largest_difference(run(2, 3, dir.path / "one", {}), whole) <= 1e-5);
}

TEST_CASE("sharded checkpoint: a rank finds its shards without communication, and read_checkpoint merges them") {
  const TempDir dir;
  std::vector<std::int64_t> elements(3);
  std::vector<std::vector<float>> values;
  in_group(3, [&](ProcessGroup& group) {
    Net net;
    FullyShardedDataParallel fsdp(net, borrow(group), {.min_elements = 20});
    optim::AdamW adam(fsdp.parameters());
    if (group.rank() == 1)  // the others have no part in it
      for (const Shard& s : fsdp.shards()) elements[1] += s.values.numel();
    save_sharded_checkpoint(dir.path / "three", fsdp, adam, group);
    fsdp.unshard();
    if (group.rank() == 0) values = values_of(net);
  });
  CHECK(elements[1] == 46);  // a third of 6 * 11 + 11, of 2 * 11 and of 11 * 3 + 3, each rounded up
  Net net;
  net.load_state_dict(read_checkpoint(dir.path / "three").model);
  CHECK(values_of(net) == values);
}

TEST_CASE("sharded checkpoint: files that are missing, of another network, or cannot be written") {
  const TempDir dir;
  const auto saved = dir.path / "two";
  run(2, 1, {}, saved);
  const auto errors = [&](const std::filesystem::path& from, const std::filesystem::path& to, std::int64_t width) {
    return errors_in_group(2, [&](ProcessGroup& group) {
      nn::Linear net(6, width);
      FullyShardedDataParallel fsdp(net, borrow(group));
      optim::AdamW adam(fsdp.parameters());
      if (!to.empty()) return save_sharded_checkpoint(to, fsdp, adam, group);
      load_sharded_checkpoint(from, fsdp, adam);
    });
  };
  for (const auto& e : errors(saved, {}, 4)) CHECK(contains(e, "is not one of this network: it has \""));
  write_checkpoint(dir.path / "whole", Checkpoint());
  for (const auto& e : errors(dir.path / "whole", {}, 4)) CHECK(contains(e, "whole has no part files."));
  for (const auto& e : errors(dir.path, {}, 4)) CHECK(contains(e, "state.json: No such file"));
  io::write_file(dir.path / "file", std::string("in the way"));
  for (const auto& e : errors({}, dir.path / "file" / "checkpoint", 4)) CHECK_FALSE(e.empty());
  for (const auto& e : errors_in_group(2, [&](ProcessGroup& group) {
         struct Wider : nn::Module {
           nn::Linear& a = add<nn::Linear>("a", 7, 11);
         } net;
         FullyShardedDataParallel fsdp(net, borrow(group));
         optim::AdamW adam(fsdp.parameters());
         save_sharded_checkpoint(dir.path / "part", fsdp, adam, group);
         Net other;
         FullyShardedDataParallel more(other, borrow(group));
         optim::AdamW steps(more.parameters());
         load_sharded_checkpoint(dir.path / "part", more, steps);
       }))
    CHECK(contains(e, "\"a.weight\" is (11, 7) there and (11, 6) here"));
  std::filesystem::remove(saved / "part-1-of-2.safetensors");
  const auto missing = errors_in_group(2, [&](ProcessGroup& group) {
    Net net;
    FullyShardedDataParallel fsdp(net, borrow(group));
    optim::AdamW adam(fsdp.parameters());
    load_sharded_checkpoint(saved, fsdp, adam);
  });
  for (const auto& e : missing) CHECK(contains(e, "part-1-of-2.safetensors"));
}
