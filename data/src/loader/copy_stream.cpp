#include "copy_stream.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace levin::detail {

cuda::Stream copy_stream_of(int device) {
  static std::mutex mutex;
  static std::map<int, cuda::Stream>& streams = *new std::map<int, cuda::Stream>;  // never destroyed
  const std::lock_guard lock(mutex);
  return streams.try_emplace(device, device).first->second;
}

CopyStream::CopyStream(std::span<const Tensor> from, Device to) {
  const bool pinned = to.type == DeviceType::cuda && !from.empty() &&
                      std::all_of(from.begin(), from.end(), [](const Tensor& t) { return cuda::is_pinned(t); });
  if (!pinned || cuda::is_current_stream_capturing()) return;
  before_.emplace(cuda::current_stream(to.index));
  copies_.emplace(copy_stream_of(to.index));
  guard_.emplace(*copies_);
}

void CopyStream::finish(std::span<const Tensor> copied) const {
  if (!copies_) return;
  before_->wait_stream(*copies_);
  for (const Tensor& t : copied) cuda::record_stream(t, *before_);
}

}  // namespace levin::detail
