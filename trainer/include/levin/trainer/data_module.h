#pragma once
// The data of a run: its loaders in one value, or a class that makes them.

#include <levin/data/dataloader.h>
#include <levin/data/mnist.h>
#include <levin/trainer/state_map.h>
#include <levin/trainer/train_state.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

namespace levin {

using LoaderPtr = std::shared_ptr<data::DataLoader>;

/// Loaders that are walked one after the other; mostly one. Reads as a pointer to the first.
class Loaders {
 public:
  Loaders();
  ~Loaders();
  Loaders(const Loaders&);
  Loaders(Loaders&&) noexcept;
  Loaders& operator=(const Loaders&);
  Loaders& operator=(Loaders&&) noexcept;
  Loaders(std::nullptr_t);               // NOLINT: implicit, like the others
  Loaders(LoaderPtr loader);             // NOLINT
  Loaders(std::vector<LoaderPtr> list);  // NOLINT
  Loaders(std::initializer_list<LoaderPtr> list);
  explicit operator bool() const { return size() != 0; }
  data::DataLoader& operator*() const;
  data::DataLoader* operator->() const;
  std::size_t size() const;
  data::DataLoader& operator[](std::size_t i) const;
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  std::vector<LoaderPtr> list_;
};

/// A loader that somebody else owns, and keeps alive.
LoaderPtr borrowed(data::DataLoader& loader);

/// Loaders may be absent; each is shared by all copies.
struct DataModule {
  LoaderPtr train{};
  Loaders val{}, test{}, predict{};
};

/// Data with a life of its own, as Lightning's: downloads, setup by stage, loaders made when a run asks for them, state
/// in checkpoints. Hooks do nothing unless overridden.
class LevinDataModule {
 public:
  virtual ~LevinDataModule() = default;
  /// Once a machine: what must not happen twice, such as a download.
  virtual void prepare_data() {}
  /// In every process, before the callbacks' and the module's own setup.
  virtual void setup(Stage) {}
  virtual LoaderPtr train_dataloader() { return {}; }
  virtual Loaders val_dataloader() { return {}; }
  virtual Loaders test_dataloader() { return {}; }
  virtual Loaders predict_dataloader() { return {}; }
  virtual void teardown(Stage) {}
  virtual void on_exception(const std::exception&) {}

  // A batch on its way to the device; see LevinModule's hooks of these names, in whose place they come.
  virtual Batch on_before_batch_transfer(Batch batch) { return batch; }
  virtual Batch transfer_batch_to_device(Batch batch, Device device) { return batch.to(device); }
  virtual Batch on_after_batch_transfer(Batch batch) { return batch; }

  /// Kept by checkpoints, beside the state of the loaders themselves.
  virtual StateMap state() const { return {}; }
  virtual void load_state(const StateMap&) {}
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
