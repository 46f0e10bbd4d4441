#pragma once
// Requeues jobs of the SLURM cluster manager that run out of time (sbatch --signal=USR1@90).

#include <filesystem>
#include <optional>
#include <string>

namespace levin::slurm {

/// Returns the id of this job, "12" or "12_3" in an array; empty outside of SLURM and in an interactive job.
std::optional<std::string> job_id();

/// Runs `scontrol requeue JOB`, found in PATH. Returns false with a warning if it fails.
bool requeue(const std::string& job);

/// Checkpoints of requeued jobs are root/hpc_ckpt_1, _2, ...: returns the newest (empty if there is none), and the next
/// to write.
std::filesystem::path newest_checkpoint(const std::filesystem::path& root);
std::filesystem::path next_checkpoint(const std::filesystem::path& root);

}  // namespace levin::slurm
