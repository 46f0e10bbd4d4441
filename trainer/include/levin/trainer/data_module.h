#pragma once
// The loaders of a run in one value.

#include <levin/data/dataloader.h>
#include <levin/data/mnist.h>

#include <cstdint>
#include <filesystem>
#include <memory>

namespace levin {

/// Loaders may be absent; each is shared by all copies.
struct DataModule {
  std::shared_ptr<data::DataLoader> train{}, val{}, test{}, predict{};
};

namespace data {

struct FashionMnistOptions {
  std::int64_t batch_size = 128;
  std::int64_t eval_batch_size = 500;
  std::int64_t num_val = 5000;  ///< training pictures held out, chosen by seed
  std::uint64_t seed = 0;       ///< of the held-out pictures and of the order
  int num_workers = 0;
  std::filesystem::path dir = kFashionMnistDir;
};

/// Fashion-MNIST for fit and test: shuffled training pictures, held-out ones for validation, the test set. The files
/// are read here.
DataModule fashion_mnist(const FashionMnistOptions& options = {});
/// The digits; `dir` must be given.
DataModule mnist(const FashionMnistOptions& options);

}  // namespace data
}  // namespace levin
