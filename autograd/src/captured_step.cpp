#include <levin/autograd/captured_step.h>

#include "host_recording.h"

#include <levin/core/error.h>
#include <levin/kernels/cuda.h>

#include <memory>
#include <optional>

namespace levin {

struct CapturedStep::Impl {
  explicit Impl(const Impl* before) : host(before ? &before->host : nullptr) {}

  HostRecording host;
  std::optional<cuda::Graph> graph;  ///< of the CUDA device, if the program uses one
};

CapturedStep::CapturedStep(OwnedPtr<Impl> impl) : impl_(std::move(impl)) {}
CapturedStep::CapturedStep(CapturedStep&&) noexcept = default;
CapturedStep& CapturedStep::operator=(CapturedStep&&) noexcept = default;
CapturedStep::~CapturedStep() = default;

void CapturedStep::replay() {
  detail::require_not_captured("capture", "another one cannot be replayed now. Replay it before or after the capture");
  Impl& step = *impl_;
  step.host.read_values();
  if (step.graph) step.graph->replay();
  step.host.run();
}

std::size_t CapturedStep::kernels() const { return impl_->host.calls(); }
std::size_t CapturedStep::memory() const { return impl_->host.memory(); }

CapturedStep capture(const std::function<void()>& work, const CapturedStep* before) {
  detail::require_not_captured("capture", "no other capture can begin now. End this one first");
  auto impl = std::make_unique<CapturedStep::Impl>(before ? before->impl_.get() : nullptr);
  if (cuda::is_available() && cuda::memory_reserved() > 0) {
    impl->graph.emplace();
    impl->graph->capture(work, before && before->impl_->graph ? before->impl_->graph->pool() : 0);
  } else {
    work();
  }
  impl->host.end();
  return CapturedStep(std::move(impl));
}

}  // namespace levin
