#pragma once
// Device memory that a launcher needs while its kernels run.

#include <levin/core/device.h>

#include <utility>

namespace levin::kernels::cuda {

/// Allocates from the stream's caching allocator; throws OutOfMemory.
void* allocate_scratch(std::size_t bytes, Stream& stream);
void free_scratch(void* p, std::size_t bytes, const Stream& stream) noexcept;

/// `count` uninitialised elements, aligned to 256 bytes. The memory may be freed as soon as the last kernel that uses
/// it is queued on the stream: the stream's order puts any later user after it.
template <class T>
class Scratch {
 public:
  Scratch(Stream& stream, std::int64_t count)
      : stream_(stream), bytes_(count > 0 ? static_cast<std::size_t>(count) * sizeof(T) : 0) {
    if (bytes_ > 0) p_ = static_cast<T*>(allocate_scratch(bytes_, stream));
  }
  ~Scratch() {
    if (p_) free_scratch(p_, bytes_, stream_);
  }
  Scratch(Scratch&& other) noexcept
      : stream_(other.stream_), bytes_(other.bytes_), p_(std::exchange(other.p_, nullptr)) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* get() const { return p_; }  ///< null if there are no elements
  std::size_t bytes() const { return bytes_; }

 private:
  Stream stream_;
  std::size_t bytes_;
  T* p_ = nullptr;
};

}  // namespace levin::kernels::cuda
