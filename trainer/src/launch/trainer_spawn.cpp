// The Trainer under ddp_spawn: passes results between the calling process and the ranks.
#include <fmt/format.h>

#include "src/checkpoint/checkpoint_values.h"
#include "src/launch/spawn.h"
#include "src/trainer_impl.h"

namespace levin {

void Trainer::Impl::spawned(LevinModule& module, Stage stage, const std::function<void()>& here) {
  using Part = SpawnCall::Part;
  const SpawnCall call = next_spawn_call(config);
  if (call.part == Part::here) return here();
  if (stage == Stage::predict)
    throw UsageError("[predict] the predictions of ddp_spawn's ranks stay in their processes. Use --strategy ddp.");
  if (call.part == Part::rank) {
    here();
    if (fabric.is_global_zero()) write_checkpoint(call.result, spawn_result(module));
    fabric.barrier();
    throw SpawnDone();
  }
  if (call.part == Part::parent) run_ranks(call, config);
  take_result(module, stage, call.result);
}

/// Returns everything that the caller may read: weights, counts, metrics, callbacks, and after fit the state to resume
/// from.
Checkpoint Trainer::Impl::spawn_result(const LevinModule& module) {
  Checkpoint c = finished.value_or(Checkpoint());
  c.model = precision->weights(module);
  save_callbacks(c, callbacks);
  c.values.put("loop", state.to_map());
  c.values.put("metrics", metrics.state());
  c.values.set("val_batches", counts.val);
  c.values.set("test_batches", counts.test);
  c.values.set("checkpoint", ckpt_path);
  return c;
}

void Trainer::Impl::take_result(LevinModule& module, Stage stage, const std::string& folder) {
  take_callbacks(module);
  Run run = make_run(module, stage);
  fabric.setup_module(module);
  const Checkpoint c = read_checkpoint(folder);
  for (const auto& callback : callbacks)
    if (auto* policy = dynamic_cast<CheckpointPolicy*>(callback.get())) policy->setup(run);
  load_weights(run, c.model, folder);
  restore_callbacks(run, c, folder);
  metrics.load_state(c.values.part("metrics"));
  counts.val = c.values.get<std::vector<std::int64_t>>("val_batches");
  counts.test = c.values.get<std::vector<std::int64_t>>("test_batches");
  ckpt_path = c.values.get<std::string>("checkpoint");
  status = RunStatus::success;
  if (stage == Stage::fit) finished = c;
}

}  // namespace levin
