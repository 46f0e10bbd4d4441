#include "src/transports/sigpipe.h"

#include <signal.h>

#include <cerrno>

namespace levin::distributed {

struct WithoutSigpipe::Mask {
  sigset_t set{}, pipe_only{};
  bool pending = false;  // whether SIGPIPE was pending before
};

WithoutSigpipe::WithoutSigpipe() : old_(std::make_unique<Mask>()) {
  sigemptyset(&old_->pipe_only);
  sigaddset(&old_->pipe_only, SIGPIPE);
  sigset_t pending{};
  sigpending(&pending);
  old_->pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &old_->pipe_only, &old_->set);
}

// Consumes a signal that arrived meanwhile; it would end the process once unblocked.
WithoutSigpipe::~WithoutSigpipe() {
  const timespec at_once{};
  while (!old_->pending && sigtimedwait(&old_->pipe_only, nullptr, &at_once) < 0 && errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &old_->set, nullptr);
}

}  // namespace levin::distributed
