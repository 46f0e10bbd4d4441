#pragma once
// Names of the files that profilers write.

#include <levin/trainer/train_state.h>

#include <filesystem>

namespace levin {

/// Returns "trace.json" for fit and "trace-test.json" for a later test, so that the files do not overwrite each other.
inline std::filesystem::path stage_file(const std::filesystem::path& file, Stage stage) {
  constexpr const char* kNames[] = {"", "-validate", "-test", "-predict"};
  std::filesystem::path name = file.stem();
  name += kNames[static_cast<int>(stage)];
  name += file.extension();
  return file.parent_path() / name;
}

}  // namespace levin
