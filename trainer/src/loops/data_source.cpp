#include "src/loops/data_source.h"

#include <levin/core/warning.h>

#include <fmt/format.h>

#include <algorithm>

namespace levin {

LoaderPtr DataSource::train(LevinModule& module) const {
  if (datamodule) return datamodule->train_dataloader();
  return given.train ? given.train : module.train_dataloader();
}

Loaders DataSource::eval(Stage stage, LevinModule& module) const {
  switch (stage) {
    case Stage::test:
      if (datamodule) return datamodule->test_dataloader();
      return given.test ? given.test : module.test_dataloader();
    case Stage::predict:
      if (datamodule) return datamodule->predict_dataloader();
      return given.predict ? given.predict : module.predict_dataloader();
    case Stage::fit:
    case Stage::validate:
      break;
  }
  if (datamodule) return datamodule->val_dataloader();
  // A fit that was given only training data validates only on the module's own data.
  return given.val ? given.val : module.val_dataloader();
}

std::int64_t EvalPlan::total() const {
  std::int64_t sum = 0;
  for (const std::int64_t n : batches) {
    if (n < 0) return -1;
    sum += n;
  }
  return sum;
}

EvalPlan EvalPlan::at_most(std::int64_t most) const {
  EvalPlan out = *this;
  if (most >= 0)
    for (std::int64_t& n : out.batches) n = n < 0 ? most : std::min(n, most);
  return out;
}

std::int64_t batches_of(const BatchLimit& limit, const data::DataLoader& loader, const char* option) {
  if (loader.has_size()) return limit.of(loader.size(), option);
  limit.check(option);
  if (limit.is_count()) return limit.count();
  if (limit.fraction() == 1.0) return -1;
  if (limit.fraction() == 0.0) return 0;
  throw UsageError(
      fmt::format("{} {}: the loader does not know how many batches it has. Give 1.0 or a number of "
                  "batches.",
                  option, limit.fraction()));
}

LoaderPtr shared_out(const LoaderPtr& loader, const Strategy& strategy, bool pad) {
  if (!loader || strategy.world_size() == 1) return loader;
  const int ranks = strategy.data_ranks();
  const bool shares = ranks > 1 && loader->options().num_replicas == 1;
  LoaderPtr own = shares ? loader->share_of(ranks, strategy.rank(), pad) : loader;
  own->take_seeds(data::LoaderState::from_map(strategy.broadcast(own->state().to_map(), 0)));
  return own;
}

LoaderPtr in_order(const LoaderPtr& loader) {
  if (!loader || !loader->dataset()) return loader;
  data::DataLoaderOptions options = loader->options();
  if (!options.shuffle && !options.sampler && !options.batch_sampler) return loader;
  if (options.batch_sampler)
    throw UsageError(
        "--overfit-batches: the order of a loader with a batch sampler cannot be fixed. Give it a batch size.");
  warn("--overfit-batches repeats the same batches: the loader's shuffling is turned off");
  options.shuffle = false;
  options.sampler = nullptr;
  return std::make_shared<data::DataLoader>(loader->dataset(), options);
}

}  // namespace levin
