#include <levin/trainer/loggers/logger.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace levin {

std::string to_string(const Hyperparameter& value) {
  return std::visit([](const auto& v) { return fmt::format("{}", v); }, value);
}

std::string LogFolder::settle() {
  const auto root = std::filesystem::path(save_dir) / name;
  if (!version) {
    std::int64_t next = 0;
    if (std::filesystem::exists(root)) {
      for (const auto& entry : std::filesystem::directory_iterator(root)) {
        const std::string folder = entry.path().filename().string();
        std::int64_t k = 0;
        if (!folder.starts_with("version_")) continue;
        const char* digits = folder.data() + 8;
        const auto [end, error] = std::from_chars(digits, folder.data() + folder.size(), k);
        if (error == std::errc() && end == folder.data() + folder.size()) next = std::max(next, k + 1);
      }
    }
    version = next;
  }
  return root / fmt::format("version_{}", *version);
}

}  // namespace levin
