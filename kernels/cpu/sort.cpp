// Sorting: every element becomes an unsigned key in the requested order, next to its position, so that plain comparison
// is stable. Lines use a radix sort, or a radix selection for a single rank, the short ones the standard library.

#include "scratch.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/scan.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace levin::kernels {

namespace cpu {

namespace {

/// Key and position in one word: types of up to four bytes in lines below 2^32 elements.
struct ShortEntry {
  static constexpr int kKeyBits = 32;
  std::uint64_t word;
  static ShortEntry make(std::uint64_t key, int64_t place) { return {key << 32 | static_cast<std::uint64_t>(place)}; }
  std::uint64_t key() const { return word >> 32; }
  int64_t place() const { return static_cast<int64_t>(word & 0xffffffffu); }
  friend bool operator<(ShortEntry a, ShortEntry b) { return a.word < b.word; }
};

struct LongEntry {
  static constexpr int kKeyBits = 64;
  std::uint64_t word;
  int64_t at;
  static LongEntry make(std::uint64_t key, int64_t place) { return {key, place}; }
  std::uint64_t key() const { return word; }
  int64_t place() const { return at; }
  friend bool operator<(const LongEntry& a, const LongEntry& b) {
    return a.word != b.word ? a.word < b.word : a.at < b.at;
  }
};

/// Returns an unsigned number in the order of x: both zeros are equal, NaN is the largest.
template <class T>
std::uint64_t key_of(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return key_of(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    constexpr Bits top = Bits{1} << (sizeof(T) * 8 - 1);
    if (x != x) return static_cast<Bits>(~Bits{0});
    const Bits bits = std::bit_cast<Bits>(x + T(0));
    return static_cast<Bits>(bits ^ ((Bits{0} - (bits >> (sizeof(T) * 8 - 1))) | top));  // no branch on the sign
  } else if constexpr (std::is_signed_v<T> && sizeof(T) == 8) {
    return static_cast<std::uint64_t>(x) ^ (std::uint64_t{1} << 63);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<std::uint64_t>(static_cast<int64_t>(x) - std::numeric_limits<T>::min());
  } else {
    return static_cast<std::uint64_t>(x);
  }
}

/// Returns the bits in which keys differ.
template <class Entry>
std::uint64_t varying_bits(const Entry* entries, int64_t n) {
  std::uint64_t bits = 0;
  for (int64_t i = 1; i < n; ++i) bits |= entries[i].key() ^ entries[0].key();
  return bits;
}

/// Sorts by key, stably. Returns the result, which is in `entries` or in `other`.
template <int digit, class Entry>
Entry* radix_sort(Entry* entries, Entry* other, int64_t n) {
  constexpr std::uint64_t mask = (std::uint64_t{1} << digit) - 1;
  const std::uint64_t varying = varying_bits(entries, n);
  for (int shift = 0; shift < Entry::kKeyBits; shift += digit) {
    if ((varying >> shift & mask) == 0) continue;
    int64_t count[mask + 1] = {};
    for (int64_t i = 0; i < n; ++i) ++count[entries[i].key() >> shift & mask];
    int64_t at = 0;
    for (int64_t& c : count) at += std::exchange(c, at);
    for (int64_t i = 0; i < n; ++i) other[count[entries[i].key() >> shift & mask]++] = entries[i];
    std::swap(entries, other);
  }
  return entries;
}

/// Puts the entry of a rank into its place, and overwrites the others. From the top digit on, it keeps those with the
/// digit of the one that is sought, in their order.
template <class Entry>
Entry* radix_select(Entry* entries, int64_t n, const int64_t rank) {
  constexpr int digit = 8;
  constexpr std::uint64_t mask = (std::uint64_t{1} << digit) - 1;
  constexpr int64_t few = 32;
  const std::uint64_t varying = varying_bits(entries, n);
  int64_t left = rank;  // the rank among those that are kept
  for (int shift = Entry::kKeyBits - digit; shift >= 0 && n > few; shift -= digit) {
    if ((varying >> shift & mask) == 0) continue;
    int64_t count[mask + 1] = {};
    for (int64_t i = 0; i < n; ++i) ++count[entries[i].key() >> shift & mask];
    std::uint64_t wanted = 0;
    for (; left >= count[wanted]; ++wanted) left -= count[wanted];
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Entry e = entries[i];
      entries[kept] = e;  // without a branch, which would be mispredicted
      kept += (e.key() >> shift & mask) == wanted;
    }
    n = kept;
  }
  std::nth_element(entries, entries + left, entries + n);
  entries[rank] = entries[left];
  return entries;
}

/// Returns the first k of n entries in order, in `entries` or in `other`.
template <class Entry>
Entry* sorted(Entry* entries, Entry* other, int64_t n, int64_t k) {
  constexpr int64_t radix_from = 128, wide_from = 2048;  // counts of wide digits cost more than a short line
  if (k == n && n >= wide_from) return radix_sort<11>(entries, other, n);
  if (k == n && n >= radix_from) return radix_sort<8>(entries, other, n);
  if (k < n) std::nth_element(entries, entries + k, entries + n);
  std::sort(entries, entries + k);
  return entries;
}

/// The first k elements so far: a short list is kept sorted, a longer one is a heap with its last entry on top.
/// Its functions are not inlined into the loops over each type, since few elements enter it.
template <class Entry>
class FirstEntries {
 public:
  FirstEntries(Entry* list, int64_t k) : list_(list), k_(k), heap_(k > kShort) {}

  const Entry& last() const { return list_[heap_ ? 0 : k_ - 1]; }
  [[gnu::noinline]] void begin() { heap_ ? std::make_heap(list_, list_ + k_) : std::sort(list_, list_ + k_); }
  /// Puts e in place of the last entry.
  [[gnu::noinline]] void replace_last(const Entry& e) {
    if (heap_) {
      std::pop_heap(list_, list_ + k_);
      list_[k_ - 1] = e;
      std::push_heap(list_, list_ + k_);
      return;
    }
    int64_t at = k_ - 1;
    for (; at > 0 && e < list_[at - 1]; --at) list_[at] = list_[at - 1];
    list_[at] = e;
  }
  [[gnu::noinline]] void end() {
    if (heap_) std::sort_heap(list_, list_ + k_);
  }

 private:
  static constexpr int64_t kShort = 32;
  Entry* list_;
  int64_t k_;
  bool heap_;
};

/// Returns the first k of n elements `step` apart in order. Few elements enter the list; the others are passed over by
/// one comparison of values, without a key.
template <class T, class Entry, class F>
Entry* first_few(Entry* list, const T* x, int64_t step, int64_t n, int64_t k, bool descending, F&& entry) {
  for (int64_t i = 0; i < k; ++i) list[i] = entry(i);
  FirstEntries<Entry> first(list, k);
  first.begin();
  const auto scan = [&](auto passes) {  // `passes` is false if one of both is NaN
    T end = x[first.last().place() * step];
    for (int64_t i = k; i < n; ++i) {
      if (passes(x[i * step], end)) continue;
      const Entry e = entry(i);
      if (!(e < first.last())) continue;
      first.replace_last(e);
      end = x[first.last().place() * step];
    }
  };
  descending ? scan([](T v, T end) { return v <= end; }) : scan([](T v, T end) { return v >= end; });
  first.end();
  return list;
}

template <class T, class Entry>
void sort_lines(const SortArgs& a) {
  const T* x = static_cast<const T*>(a.x.pointer);
  T* values = static_cast<T*>(a.values.pointer);
  int64_t* indices = static_cast<int64_t*>(a.indices.pointer);
  constexpr std::uint64_t all = Entry::kKeyBits == 64 ? ~std::uint64_t{0} : std::uint64_t{0xffffffffu};
  const std::uint64_t flip = a.descending ? all : 0;
  parallel_for(0, a.outer * a.inner, std::max<int64_t>(1, 2048 / a.n), [&](int64_t b, int64_t e) {
    Entry* space = scratch<Entry>(Slot::sort, 2 * a.n);
    for (int64_t line = b; line < e; ++line) {
      const int64_t o = line / a.inner, j = line % a.inner;
      const T* from = x + o * a.n * a.inner + j;
      const auto entry = [&](int64_t i) { return Entry::make(key_of(from[i * a.inner]) ^ flip, i); };
      const Entry* done;
      if (a.k <= a.n / 16) {
        done = first_few(space, from, a.inner, a.n, a.k, a.descending, entry);
      } else {
        for (int64_t i = 0; i < a.n; ++i) space[i] = entry(i);
        done = a.k - a.from == 1 ? radix_select(space, a.n, a.from) : sorted(space, space + a.n, a.n, a.k);
      }
      for (int64_t i = a.from; i < a.k; ++i) {
        const int64_t to = (o * (a.k - a.from) + i - a.from) * a.inner + j;
        indices[to] = done[i].place();
        values[to] = from[done[i].place() * a.inner];
      }
    }
  });
}

void sort(const SortArgs& a, Stream&) {
  if (a.outer * a.n * a.inner * a.k == 0) return;
  dispatch_all(a.x.dtype, "sort", [&]<class T>() {
    if (sizeof(T) == 8 || a.n > int64_t{0xffffffff}) return sort_lines<T, LongEntry>(a);
    sort_lines<T, ShortEntry>(a);
  });
}

}  // namespace

}  // namespace cpu

LEVIN_KERNEL(SortArgs, sort, cpu::sort);
LEVIN_KERNEL(SortArgs, topk, cpu::sort);

}  // namespace levin::kernels
