#pragma once
// Intrusive reference counting: a handle is one pointer, and there is no control block.

#include <atomic>
#include <cstdint>
#include <utility>

namespace levin {

/// Base of reference-counted objects. The count starts at 0, and the last IntrusivePtr deletes the object.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  /// Returns the number of IntrusivePtrs to this object; another thread may change it at any time.
  std::uint32_t use_count() const { return count_.load(std::memory_order_acquire); }

 protected:
  ~RefCounted() = default;

 private:
  template <class T> friend class IntrusivePtr;
  std::atomic<std::uint32_t> count_{0};
};

/// Shared ownership of a RefCounted object, as std::shared_ptr: copying and destroying different pointers to one object
/// is thread-safe, changing one pointer from two threads is not.
template <class T>
class IntrusivePtr {
 public:
  IntrusivePtr() = default;
  /// Owns nothing.
  IntrusivePtr(std::nullptr_t) {}  // NOLINT: implicit
  /// Takes a share of a new object, or of one that other IntrusivePtrs own.
  explicit IntrusivePtr(T* p) : p_(p) { retain(); }

  IntrusivePtr(const IntrusivePtr& o) : p_(o.p_) { retain(); }
  IntrusivePtr(IntrusivePtr&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  IntrusivePtr& operator=(const IntrusivePtr& o) {
    IntrusivePtr(o).swap(*this);
    return *this;
  }
  IntrusivePtr& operator=(IntrusivePtr&& o) noexcept {
    IntrusivePtr(std::move(o)).swap(*this);
    return *this;
  }
  ~IntrusivePtr() { drop(); }

  void swap(IntrusivePtr& o) noexcept { std::swap(p_, o.p_); }
  /// Gives up the share and becomes null.
  void reset() { IntrusivePtr().swap(*this); }
  /// Returns the pointer, null if there is none.
  T* get() const { return p_; }

  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  friend bool operator==(const IntrusivePtr& a, const IntrusivePtr& b) { return a.p_ == b.p_; }

  /// Gives up the pointer without changing the count; adopt() takes such a pointer back.
  T* release() { return std::exchange(p_, nullptr); }
  static IntrusivePtr adopt(T* p) {
    IntrusivePtr r;
    r.p_ = p;
    return r;
  }

 private:
  void retain() {
    if (p_) p_->count_.fetch_add(1, std::memory_order_relaxed);
  }
  void drop() {
    if (p_ && p_->count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete p_;
  }
  T* p_ = nullptr;
};

/// Returns the owner of a new T(a...).
template <class T, class... A>
IntrusivePtr<T> make_intrusive(A&&... a) {
  return IntrusivePtr<T>(new T(std::forward<A>(a)...));
}

/// Gives a class its own thread-local free list, of at most 4096 objects, since tensors and graph nodes are allocated
/// and freed millions of times.
template <class T>
class Pooled {
 public:
  /// Takes memory from the calling thread's list, or else allocates it.
  static void* operator new(std::size_t bytes) {
    auto& list = free_list();
    if (bytes == sizeof(T) && list.head) {
      Slot* s = list.head;
      list.head = s->next;
      --list.count;
      return s;
    }
    return ::operator new(bytes);
  }
  /// Puts memory on the calling thread's list, or frees it if the list is full.
  static void operator delete(void* p, std::size_t bytes) {
    auto& list = free_list();
    if (bytes == sizeof(T) && list.count < kKeep) {
      auto* s = static_cast<Slot*>(p);
      s->next = list.head;
      list.head = s;
      ++list.count;
    } else {
      ::operator delete(p);
    }
  }

 private:
  static constexpr int kKeep = 4096;
  struct Slot {
    Slot* next;
  };
  struct FreeList {
    Slot* head = nullptr;
    int count = 0;
    ~FreeList() {
      count = kKeep;  // marks the list as full, so that later frees of this thread go to the system
      while (head) ::operator delete(std::exchange(head, head->next));
    }
  };
  static FreeList& free_list() {
    static thread_local FreeList list;
    return list;
  }
};

}  // namespace levin
