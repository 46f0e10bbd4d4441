#include <levin/trainer/callbacks/on_exception_checkpoint.h>

#include <fmt/format.h>

#include <filesystem>

namespace levin {

OnExceptionCheckpoint::OnExceptionCheckpoint(std::string dirpath, std::string filename)
    : dirpath_(std::move(dirpath)), filename_(std::move(filename)) {
  if (filename_.empty() || filename_.find('/') != std::string::npos || filename_ == "." || filename_ == "..")
    throw UsageError(
        fmt::format("[OnExceptionCheckpoint] filename is \"{}\". Give the name of one folder.", filename_));
}

std::string OnExceptionCheckpoint::path() const { return std::filesystem::path(dir_) / filename_; }

void OnExceptionCheckpoint::setup(RunContext& run) {
  dir_ = dirpath_.empty() ? (std::filesystem::path(run.root_dir) / "checkpoints").string() : dirpath_;
}

std::vector<CheckpointAction> OnExceptionCheckpoint::decide_exception(RunContext&) {
  return {{CheckpointAction::Kind::save, path(), {}, false}};
}

std::vector<CheckpointAction> OnExceptionCheckpoint::decide_interrupted(RunContext& run) {
  return decide_exception(run);
}

std::vector<CheckpointAction> OnExceptionCheckpoint::decide_finished(RunContext&) {
  return {{CheckpointAction::Kind::remove, path(), {}, false}};
}

std::string OnExceptionCheckpoint::resume_from() const {
  return std::filesystem::is_directory(path()) ? path() : std::string();
}

}  // namespace levin
