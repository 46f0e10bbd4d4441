#pragma once
// Errors of communication between processes. Each text names the operation, the rank or address, and the remedy.

#include <levin/core/error.h>

namespace levin::distributed {

/// Base class of the errors of this module.
class DistributedError : public Error {
 public:
  using Error::Error;
};

/// A store could not be opened, reached or used: the port is taken, the host is unknown, or a key was never set.
class StoreError : public DistributedError {
 public:
  using DistributedError::DistributedError;
};

/// Rendezvous failed: a variable is missing or malformed, ranks are missing, or world sizes differ.
class RendezvousError : public DistributedError {
 public:
  using DistributedError::DistributedError;
};

/// An operation took longer than its timeout.
class CollectiveTimeout : public DistributedError {
 public:
  using DistributedError::DistributedError;
};

/// Ranks called different operations, or the same one with other shapes or dtypes.
class CollectiveMismatch : public DistributedError {
 public:
  using DistributedError::DistributedError;
};

/// Another rank died, failed or left, which ends the group.
class RankLost : public DistributedError {
 public:
  /// `rank` is the world rank of the lost rank.
  RankLost(int rank, const std::string& text) : DistributedError(text), rank_(rank) {}
  int rank() const { return rank_; }  ///< world rank of the lost rank

 private:
  int rank_;
};

}  // namespace levin::distributed
