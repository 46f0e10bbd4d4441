#pragma once
// Jobs of the SLURM cluster manager that run out of time are put in its queue again (sbatch --signal=USR1@90).

#include <filesystem>
#include <optional>
#include <string>

namespace levin::slurm {

/// The job of this process, "12" or "12_3" in an array; nothing outside of SLURM and in an interactive job.
std::optional<std::string> job_id();

/// `scontrol requeue JOB`, found by PATH. False, with a warning, where that failed.
bool requeue(const std::string& job);

/// Checkpoints for that are root/hpc_ckpt_1, _2, ...: the newest, empty when there is none; and the one to write next.
std::filesystem::path newest_checkpoint(const std::filesystem::path& root);
std::filesystem::path next_checkpoint(const std::filesystem::path& root);

}  // namespace levin::slurm
