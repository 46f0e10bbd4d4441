#include <fmt/format.h>
#include <fmt/ranges.h>
#include <levin/distributed/store.h>

namespace levin::distributed {

std::string Store::get(const std::string& key) {
  wait({key});
  if (auto value = try_get(key)) return *std::move(value);
  throw StoreError(fmt::format("[store] the key {} of {} was removed while it was read.", key, address()));
}

void Store::wait(const std::vector<std::string>& keys, std::optional<Duration> timeout) {
  const Duration limit = timeout.value_or(timeout_);
  const auto missing = wait_missing(keys, limit);
  if (missing.empty()) return;
  throw StoreError(fmt::format("[store] {} of {} keys were not set in {} within {} s: {}.", missing.size(), keys.size(),
                               address(), limit.seconds(), fmt::join(missing, ", ")));
}

PrefixStore::PrefixStore(std::string prefix, std::shared_ptr<Store> base)
    : prefix_(std::move(prefix) + "/"), base_(std::move(base)) {
  set_timeout(base_->timeout());
}

std::vector<std::string> PrefixStore::wait_missing(const std::vector<std::string>& keys, Duration timeout) {
  std::vector<std::string> full;
  for (const std::string& key : keys) full.push_back(prefix_ + key);
  auto missing = base_->wait_missing(full, timeout);
  for (std::string& key : missing) key.erase(0, prefix_.size());
  return missing;
}

std::vector<std::string> PrefixStore::keys(const std::string& prefix) {
  auto names = base_->keys(prefix_ + prefix);
  for (std::string& name : names) name.erase(0, prefix_.size());
  return names;
}

}  // namespace levin::distributed
