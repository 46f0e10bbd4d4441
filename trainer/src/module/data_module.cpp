#include <levin/trainer/data_module.h>

#include <levin/core/error.h>

#include <fmt/format.h>

namespace levin {

LoaderPtr borrowed(data::DataLoader& loader) { return LoaderPtr(std::shared_ptr<void>(), &loader); }

namespace data {
namespace {

template <class D>
DataModule make(const FashionMnistOptions& o) {
  const auto train = share(D("train", o.dir));
  if (o.num_val < 0 || o.num_val >= train->size())
    throw UsageError(
        fmt::format("[data] {} images cannot be held out of {}. Give a smaller number.", o.num_val, train->size()));
  const auto parts = random_split(train, {train->size() - o.num_val, o.num_val}, Generator(o.seed).fork(0x76616c));
  const auto loader = [&](DatasetPtr dataset, std::int64_t batch_size, bool shuffle) {
    return std::make_shared<DataLoader>(
        std::move(dataset),
        DataLoaderOptions{.batch_size = batch_size, .shuffle = shuffle, .num_workers = o.num_workers, .seed = o.seed});
  };
  DataModule out{.train = loader(share(parts[0]), o.batch_size, true),
                 .test = loader(share(D("test", o.dir)), o.eval_batch_size, false)};
  if (o.num_val > 0) out.val = loader(share(parts[1]), o.eval_batch_size, false);
  return out;
}

}  // namespace

DataModule fashion_mnist(const FashionMnistOptions& options) { return make<FashionMnist>(options); }
DataModule mnist(const FashionMnistOptions& options) { return make<Mnist>(options); }

}  // namespace data
Loaders::Loaders() = default;
Loaders::~Loaders() = default;
Loaders::Loaders(const Loaders&) = default;
Loaders::Loaders(Loaders&&) noexcept = default;
Loaders& Loaders::operator=(const Loaders&) = default;
Loaders& Loaders::operator=(Loaders&&) noexcept = default;
Loaders::Loaders(std::nullptr_t) {}
Loaders::Loaders(LoaderPtr loader) {
  if (loader) list_.push_back(std::move(loader));
}
Loaders::Loaders(std::vector<LoaderPtr> list) : list_(std::move(list)) {}
Loaders::Loaders(std::initializer_list<LoaderPtr> list) : list_(list) {}
data::DataLoader& Loaders::operator*() const { return *list_.front(); }
data::DataLoader* Loaders::operator->() const { return list_.front().get(); }
std::size_t Loaders::size() const { return list_.size(); }
data::DataLoader& Loaders::operator[](std::size_t i) const { return *list_.at(i); }

}  // namespace levin
