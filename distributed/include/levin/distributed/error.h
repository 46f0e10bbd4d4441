#pragma once
// What can go wrong between processes. Each text names the operation, the rank or address, and the remedy.

#include <levin/core/error.h>

namespace levin::distributed {

/// Base of the errors of this module.
class DistributedError : public Error {
 public:
  using Error::Error;
};

/// A store could not be opened, reached or used: a port that is taken, a host that is unknown, a key that never came.
class StoreError : public DistributedError {
 public:
  using DistributedError::DistributedError;
};

/// The ranks did not find together: a variable is missing or senseless, ranks are missing, or world sizes differ.
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

/// Another rank died, failed or left, so that the group is at its end.
class RankLost : public DistributedError {
 public:
  RankLost(int rank, const std::string& text) : DistributedError(text), rank_(rank) {}
  int rank() const { return rank_; }  ///< of the rank that is gone, in the world

 private:
  int rank_;
};

}  // namespace levin::distributed
