#pragma once
// Protection against SIGPIPE.

#include <memory>

namespace levin::distributed {

/// Blocks SIGPIPE: writing to a closed socket must be an error and not end the process.
class WithoutSigpipe {
 public:
  WithoutSigpipe();
  ~WithoutSigpipe();
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  struct Mask;
  std::unique_ptr<Mask> old_;
};

}  // namespace levin::distributed
