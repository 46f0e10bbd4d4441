#pragma once
// Scratch memory of the kernels: each thread keeps one buffer per slot, which only grows, so that a steady step
// allocates nothing. A slot belongs to one level of one kernel family: a kernel that calls another must use other
// slots.

#include <cstddef>
#include <cstdint>
#include <new>

namespace levin::kernels::cpu {

enum class Slot {
  gemm_shared,
  gemm_a,
  gemm_b,
  gemm_convert,
  gemm_parts,
  gemm_own_parts,
  gemm_results,
  conv_weights,
  conv_source,
  conv_pixels,
  conv_sums,
  conv_columns,
  reduce,
  norm,
  loss,
  sort,
  index,
  attention,
  attention_words,
  int8_weight,
  int8_values,
  int8_steps,
  int8_sums,
  int8_images,
  int8_windows,
  optim,
  count
};

inline constexpr std::size_t kScratchAlignment = 64;

namespace detail {
class ScratchBuffer {
 public:
  ScratchBuffer() = default;
  ScratchBuffer(const ScratchBuffer&) = delete;
  ScratchBuffer& operator=(const ScratchBuffer&) = delete;
  ~ScratchBuffer() { release(); }

  void* at_least(std::size_t bytes) {
    if (bytes > size_) {
      release();
      data_ = ::operator new (bytes, std::align_val_t{kScratchAlignment});
      size_ = bytes;
    }
    return data_;
  }

 private:
  void release() {
    ::operator delete (data_, std::align_val_t{kScratchAlignment});
    data_ = nullptr;
    size_ = 0;
  }
  void* data_ = nullptr;
  std::size_t size_ = 0;
};
}  // namespace detail

/// Returns the calling thread's buffer of a slot with room for `count` elements, 64-byte aligned, contents undefined.
/// It is valid until the same thread requests the slot again; other threads may use it while they work for the
/// requesting thread.
template <class T>
T* scratch(Slot slot, std::int64_t count) {
  thread_local detail::ScratchBuffer buffers[static_cast<std::size_t>(Slot::count)];
  return static_cast<T*>(buffers[static_cast<std::size_t>(slot)].at_least(static_cast<std::size_t>(count) * sizeof(T)));
}

}  // namespace levin::kernels::cpu
