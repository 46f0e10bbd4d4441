#include <levin/trainer/train_state.h>

namespace levin {

StateMap TrainState::to_map() const {
  StateMap m;
  m.set("epoch", epoch);
  m.set("batch", batch);
  m.set("total_batches", total_batches);
  m.set("global_step", global_step);
  m.set("optimizer_steps", optimizer_steps);
  m.set("samples", samples);
  m.set("micro", micro);
  m.set("window_nominal", window_nominal);
  m.set("window_weight", window_weight);
  m.set("eval_loader", eval_loader);
  m.set("eval_batch", eval_batch);
  m.set("point", static_cast<std::int64_t>(point));
  m.set("epoch_complete", static_cast<std::int64_t>(epoch_complete));
  return m;
}

TrainState TrainState::from_map(const StateMap& m) {
  TrainState s;
  s.epoch = m.get<std::int64_t>("epoch");
  s.batch = m.get<std::int64_t>("batch");
  if (m.has("total_batches")) s.total_batches = m.get<std::int64_t>("total_batches");
  s.global_step = m.get<std::int64_t>("global_step");
  s.optimizer_steps = m.get<std::vector<std::int64_t>>("optimizer_steps");
  s.samples = m.get<std::int64_t>("samples");
  s.micro = m.get<std::int64_t>("micro");
  s.window_nominal = m.get<double>("window_nominal");
  s.window_weight = m.get<double>("window_weight");
  s.eval_loader = m.get<std::int64_t>("eval_loader");
  s.eval_batch = m.get<std::int64_t>("eval_batch");
  s.point = static_cast<SavePoint>(m.get<std::int64_t>("point"));
  s.epoch_complete = m.get<std::int64_t>("epoch_complete") != 0;
  return s;
}

}  // namespace levin
