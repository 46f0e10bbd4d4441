#pragma once
// Names of the files that profilers write.

#include <levin/trainer/train_state.h>

#include <filesystem>

namespace levin {

/// "trace.json" of a fit, "trace-test.json" of a test behind it: one does not overwrite the other.
inline std::filesystem::path stage_file(const std::filesystem::path& file, Stage stage) {
  constexpr const char* kNames[] = {"", "-validate", "-test", "-predict"};
  std::filesystem::path name = file.stem();
  name += kNames[static_cast<int>(stage)];
  name += file.extension();
  return file.parent_path() / name;
}

}  // namespace levin
