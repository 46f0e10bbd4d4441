#pragma once
// Data of a run: its loaders as one value, or a class that creates them.

#include <levin/core/state_map.h>
#include <levin/data/dataloader.h>
#include <levin/data/mnist.h>
#include <levin/trainer/train_state.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace levin {

/// A loader that a run shares with the program.
using LoaderPtr = std::shared_ptr<data::DataLoader>;

/// Wraps a loader that the caller owns and keeps alive.
LoaderPtr borrowed(data::DataLoader& loader);

/// Loaders that are iterated one after the other, usually one. Behaves like a pointer to the first.
class Loaders {
 public:
  Loaders();
  ~Loaders();
  Loaders(const Loaders&);
  Loaders(Loaders&&) noexcept;
  Loaders& operator=(const Loaders&);
  Loaders& operator=(Loaders&&) noexcept;
  /// No loader, one (null counts as none), or several.
  Loaders(std::nullptr_t);               // NOLINT: implicit, like the others
  Loaders(LoaderPtr loader);             // NOLINT
  Loaders(std::vector<LoaderPtr> list);  // NOLINT
  Loaders(std::initializer_list<LoaderPtr> list);
  /// Loaders that the caller owns and keeps alive: `Loaders{clean, noisy}`.
  template <std::derived_from<data::DataLoader>... L>
  requires(sizeof...(L) > 0) Loaders(L&... loaders)  // NOLINT
      : Loaders({borrowed(loaders)...}) {}
  /// True if there is a loader; only then may the first be accessed by * and ->.
  explicit operator bool() const { return size() != 0; }
  data::DataLoader& operator*() const;
  data::DataLoader* operator->() const;
  /// Number of loaders, and loader i.
  std::size_t size() const;
  data::DataLoader& operator[](std::size_t i) const;
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }

 private:
  std::vector<LoaderPtr> list_;
};

/// A DataLoader, a pointer to one, or several of them.
template <class L>
concept GivesLoaders = std::constructible_from<Loaders, L>;

/// The loaders of a run: for train, val, test and predict. Any may be absent; copies share them.
struct DataModule {
  LoaderPtr train{};
  Loaders val{}, test{}, predict{};
};

/// Lightning's data module: downloads, setup by stage, loaders that are created when a run requests them, state in
/// checkpoints. Hooks do nothing unless overridden.
class LevinDataModule {
 public:
  virtual ~LevinDataModule() = default;
  /// Called once per machine, for work that must not happen twice such as a download.
  virtual void prepare_data() {}
  /// Called in every process, before the callbacks' and the module's own setup.
  virtual void setup(Stage) {}
  /// Creates the loaders when a run requests them; again with reload_dataloaders_every_n_epochs.
  virtual LoaderPtr train_dataloader() { return {}; }
  virtual Loaders val_dataloader() { return {}; }
  virtual Loaders test_dataloader() { return {}; }
  virtual Loaders predict_dataloader() { return {}; }
  /// Called in every process when a run is over, also after an exception.
  virtual void teardown(Stage) {}
  /// Called when an exception ends a run, before teardown.
  virtual void on_exception(const std::exception&) {}

  // Transfer of a batch to the device. These hooks replace LevinModule's hooks of the same names.
  virtual Batch on_before_batch_transfer(Batch batch) { return batch; }
  virtual Batch transfer_batch_to_device(Batch batch, Device device) { return batch.to(device); }
  virtual Batch on_after_batch_transfer(Batch batch) { return batch; }

  /// State to store in checkpoints, in addition to the state of the loaders; load_state() receives it when a fit
  /// resumes.
  virtual StateMap state() const { return {}; }
  virtual void load_state(const StateMap&) {}
};

namespace data {

/// Options of fashion_mnist() and mnist().
struct FashionMnistOptions {
  std::int64_t batch_size = 128;                 ///< images of a training batch
  std::int64_t eval_batch_size = 500;            ///< images of a batch of validation or test
  std::int64_t num_val = 5000;                   ///< training images held out for validation, chosen by seed
  std::uint64_t seed = 0;                        ///< seed of the held-out images and of the order
  int num_workers = 0;                           ///< threads of each loader that load ahead; 0 loads in the caller
  std::string dir = kFashionMnistDir;            ///< folder of the IDX files
};

/// Fashion-MNIST for fit and test: shuffled training images, held-out images for validation, and the test set. Reads
/// the files immediately. Throws UsageError if num_val leaves no image to train on, and what data::FashionMnist throws.
DataModule fashion_mnist(const FashionMnistOptions& options = {});
/// The same for the MNIST digits; `dir` must be given.
DataModule mnist(const FashionMnistOptions& options);

}  // namespace data
}  // namespace levin
