#include <levin/trainer/callbacks/on_exception_checkpoint.h>

#include <fmt/format.h>

namespace levin {

OnExceptionCheckpoint::OnExceptionCheckpoint(std::filesystem::path dirpath, std::string filename)
    : dirpath_(std::move(dirpath)), filename_(std::move(filename)) {
  if (filename_.empty() || filename_.find('/') != std::string::npos || filename_ == "." || filename_ == "..")
    throw UsageError(
        fmt::format("[OnExceptionCheckpoint] filename is \"{}\". Give the name of one folder.", filename_));
}

void OnExceptionCheckpoint::setup(RunContext& run) {
  dir_ = dirpath_.empty() ? run.root_dir / "checkpoints" : dirpath_;
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

std::filesystem::path OnExceptionCheckpoint::resume_from() const {
  return std::filesystem::is_directory(path()) ? path() : std::filesystem::path();
}

}  // namespace levin
