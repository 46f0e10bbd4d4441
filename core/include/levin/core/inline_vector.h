#pragma once
// A vector that stores up to N elements inline.

#include <initializer_list>
#include <cstddef>
#include <utility>

namespace levin {

/// As std::vector<T>, with inline memory for N elements. T needs a default value and a move assignment that does not
/// throw: unused elements hold T{}. Indices and sizes are int and are not checked.
template <class T, int N>
class InlineVector {
 public:
  InlineVector() = default;
  // The constructors delegate, so that the destructor frees the array when copying an element throws.

  /// Holds `size` times T{}.
  explicit InlineVector(int size) : InlineVector() { resize(size); }
  /// Holds copies of the values.
  InlineVector(std::initializer_list<T> values) : InlineVector() {
    reserve(static_cast<int>(values.size()));
    for (const T& v : values) data()[size_++] = v;
  }

  InlineVector(InlineVector&& o) noexcept { take(o); }
  InlineVector& operator=(InlineVector&& o) noexcept {
    if (this != &o) {
      clear();
      take(o);
    }
    return *this;
  }
  ~InlineVector() { delete[] heap_; }
  InlineVector(const InlineVector& o) : InlineVector() { assign(o); }
  InlineVector& operator=(const InlineVector& o) {
    if (this != &o) {
      clear();
      assign(o);
    }
    return *this;
  }

  /// Number of elements, and whether there are none.
  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// Returns the first of the elements, which are contiguous; valid until the vector grows or is moved.
  T* data() { return heap_ ? heap_ : inline_; }
  const T* data() const { return heap_ ? heap_ : inline_; }

  T& operator[](int i) { return data()[i]; }
  const T& operator[](int i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

  /// Appends an element; the capacity doubles where it is used up.
  void push_back(T v) {
    if (size_ == capacity_) reserve(capacity_ * 2);
    data()[size_++] = std::move(v);
  }
  /// Appends T{} or removes elements at the end, until there are `size`.
  void resize(int size) {
    reserve(size);
    for (int i = size; i < size_; ++i) data()[i] = T{};
    size_ = size;
  }
  /// Removes all elements and keeps the memory.
  void clear() {
    for (int i = 0; i < size_; ++i) data()[i] = T{};
    size_ = 0;
  }
  /// Makes room for `capacity` elements.
  void reserve(int capacity) {
    if (capacity <= capacity_) return;
    static_assert(noexcept(std::declval<T&>() = std::declval<T>()), "a move that throws would leak the new array");
    T* const bigger = new T[static_cast<std::size_t>(capacity)]();
    for (int i = 0; i < size_; ++i) bigger[i] = std::move(data()[i]);
    delete[] std::exchange(heap_, bigger);
    capacity_ = capacity;
  }

 private:
  void assign(const InlineVector& o) {
    reserve(o.size_);
    for (int i = 0; i < o.size_; ++i) data()[i] = o[i];
    size_ = o.size_;
  }
  void take(InlineVector& o) {
    if (o.heap_) {
      delete[] std::exchange(heap_, std::exchange(o.heap_, nullptr));
      capacity_ = std::exchange(o.capacity_, N);
      size_ = std::exchange(o.size_, 0);
    } else {
      for (int i = 0; i < o.size_; ++i) data()[i] = std::exchange(o.inline_[i], T{});
      size_ = std::exchange(o.size_, 0);
    }
  }

  T inline_[N] = {};
  T* heap_ = nullptr;  // not a std::unique_ptr, each type of which costs the compiler 1.4 MB
  int size_ = 0;
  int capacity_ = N;
};

}  // namespace levin
