// Padding by repeated places, and its gradient, row by row of the last axis that is padded.

#include "index.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/scratch.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/indexing.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace levin::kernels {

namespace cpu {

namespace {

/// An axis of the padded tensor (`out` places) and of the plain one (`in` places); without positions they are the same.
struct BoxAxis {
  int64_t out, in;
  std::span<const int64_t> positions;
  int64_t place(int64_t i) const { return positions.empty() ? i : positions[static_cast<std::size_t>(i)]; }
};

/// The padded tensor as (outer axes..., row, inner): the row is the last axis that is padded, `inner` elements of the
/// axes after it move together, and neighbouring axes that are not padded are merged.
struct Box {
  std::vector<BoxAxis> outer;
  BoxAxis row{1, 1, {}};
  int64_t before = 0, inner = 1;

  Box(const TensorView& padded, const TensorView& plain, std::span<const PaddedAxis> axes) {
    bool merges = false;
    std::size_t next = 0;
    for (int d = 0; d < padded.dim(); ++d) {
      const bool is_padded = next < axes.size() && axes[next].axis == d;
      if (is_padded && next + 1 == axes.size()) {
        row = {padded.sizes[d], plain.sizes[d], axes[next].positions};
        before = axes[next].before;
        for (int after = d + 1; after < padded.dim(); ++after) inner *= padded.sizes[after];
        break;
      }
      if (is_padded) {
        outer.push_back({padded.sizes[d], plain.sizes[d], axes[next++].positions});
      } else if (merges) {
        outer.back().out *= padded.sizes[d];
        outer.back().in *= padded.sizes[d];
      } else {
        outer.push_back({padded.sizes[d], padded.sizes[d], {}});
      }
      merges = !is_padded;
    }
    if (outer.empty()) outer.push_back({1, 1, {}});
  }

  int64_t rows(int64_t BoxAxis::*size) const {
    int64_t n = 1;
    for (const BoxAxis& a : outer) n *= a.*size;
    return n;
  }
};

template <class T>
void copy_elements(T* to, const T* from, int64_t n) {
  const int64_t bytes = n * static_cast<int64_t>(sizeof(T));
  if (bytes > 512) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  } else {
    copy_short(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from), bytes);
  }
}

/// Copies `count` rows by their positions, from row `first` of a plane on: the middle at once, `inner` elements for
/// each place around it.
template <class T>
void pad_rows(const Box& box, T* to, const T* from, int64_t first, int64_t count) {
  const int64_t inner = box.inner, before = box.before, n = box.row.in, places = box.row.out, width = n * inner;
  const int64_t *const position = box.row.positions.data(), *const rows = box.outer.back().positions.data();
  for (int64_t r = first; r < first + count; ++r, to += places * inner) {
    const T* const row = from + (rows ? rows[r] : r) * width;
    if (inner == 1) {
      for (int64_t i = 0; i < before; ++i) to[i] = row[position[i]];
      copy_elements(to + before, row, n);
      for (int64_t i = before + n; i < places; ++i) to[i] = row[position[i]];
    } else {
      for (int64_t i = 0; i < before; ++i) copy_elements(to + i * inner, row + position[i] * inner, inner);
      copy_elements(to + before * inner, row, width);
      for (int64_t i = before + n; i < places; ++i) copy_elements(to + i * inner, row + position[i] * inner, inner);
    }
  }
}

void pad(const PadArgs& a, Stream&) {
  const Box box(a.out, a.x, a.axes);
  const BoxAxis& last = box.outer.back();
  const int64_t width = box.row.out * box.inner, plane = last.in * box.row.in * box.inner;
  dispatch_size(a.out.dtype, [&]<class T>() {
    parallel_for(0, box.rows(&BoxAxis::out), index_grain(width), [&](int64_t b, int64_t e) {
      for (int64_t at = b; at < e;) {
        int64_t rest = at / last.out, base = 0, scale = 1;
        for (std::size_t d = box.outer.size() - 1; d-- > 0; rest /= box.outer[d].out, scale *= box.outer[d].in)
          base += box.outer[d].place(rest % box.outer[d].out) * scale;
        const int64_t first = at % last.out, count = std::min(last.out - first, e - at);
        pad_rows(box, a.out.data<T>() + at * width, a.x.data<T>() + base * plane, first, count);
        at += count;
      }
    });
  });
}

/// The padded places of each plain place of an axis, in their order.
struct Places {
  std::vector<int64_t> start, place;

  explicit Places(const BoxAxis& axis) : start(static_cast<std::size_t>(axis.in) + 1), place() {
    for (int64_t i = 0; i < axis.out; ++i) ++start[static_cast<std::size_t>(axis.place(i)) + 1];
    for (std::size_t j = 1; j < start.size(); ++j) start[j] += start[j - 1];
    place.resize(static_cast<std::size_t>(axis.out));
    std::vector<int64_t> next(start.begin(), start.end() - 1);
    for (int64_t i = 0; i < axis.out; ++i)
      place[static_cast<std::size_t>(next[static_cast<std::size_t>(axis.place(i))]++)] = i;
  }
  std::span<const int64_t> of(int64_t j) const {
    const auto first = static_cast<std::size_t>(start[static_cast<std::size_t>(j)]);
    return std::span(place).subspan(first, static_cast<std::size_t>(start[static_cast<std::size_t>(j) + 1]) - first);
  }
};

/// Lists the padded planes, that is combinations of all outer axes but the last, that repeat a plain one, in order.
void list_planes(const Box& box, std::span<const Places> places, int64_t plane, std::vector<int64_t>& planes) {
  int64_t scale = box.rows(&BoxAxis::in) / box.outer.back().in;
  planes.assign(1, 0);
  for (std::size_t d = 0; d + 1 < box.outer.size(); ++d) {
    const BoxAxis& axis = box.outer[d];
    scale /= axis.in;
    const int64_t j = plane / scale % axis.in;
    for (int64_t& p : planes) p *= axis.out;
    if (axis.positions.empty()) {
      for (int64_t& p : planes) p += j;
    } else {
      std::vector<int64_t> longer;
      for (const int64_t p : planes)
        for (const int64_t i : places[d].of(j)) longer.push_back(p + i);
      planes = std::move(longer);
    }
  }
}

/// Computes the gradient of a row from that of one of its padded rows, or adds it.
template <class T>
void add_row(const Box& box, T* to, const T* from, bool adds) {
  const int64_t inner = box.inner, n = box.row.in * inner;
  const T* const middle = from + box.before * inner;
  if (adds) {
    for (int64_t i = 0; i < n; ++i) to[i] += middle[i];
  } else {
    copy_elements(to, middle, n);
  }
  const auto add = [&](int64_t i) {
    T* const place = to + box.row.positions[static_cast<std::size_t>(i)] * inner;
    for (int64_t k = 0; k < inner; ++k) place[k] += from[i * inner + k];
  };
  for (int64_t i = 0; i < box.before; ++i) add(i);
  for (int64_t i = box.before + box.row.in; i < box.row.out; ++i) add(i);
}

template <class T>
void pad_backward(const PadBackwardArgs& a) {
  const Box box(a.g, a.dx, a.axes);
  std::vector<Places> places;
  for (const BoxAxis& axis : box.outer) places.emplace_back(axis.positions.empty() ? BoxAxis{0, 0, {}} : axis);
  const BoxAxis& last = box.outer.back();
  const int64_t width = box.row.in * box.inner, from_width = box.row.out * box.inner;
  parallel_for(0, box.rows(&BoxAxis::in), index_grain(from_width), [&](int64_t b, int64_t e) {
    std::vector<int64_t> planes;
    for (int64_t at = b; at < e; ++at) {
      const int64_t r = at % last.in;
      if (at == b || r == 0) list_planes(box, places, at / last.in, planes);
      const std::span<const int64_t> repeats = last.positions.empty() ? std::span(&r, 1) : places.back().of(r);
      bool adds = false;
      for (const int64_t plane : planes) {
        for (const int64_t i : repeats) {
          add_row(box, a.dx.data<T>() + at * width, a.g.data<T>() + (plane * last.out + i) * from_width, adds);
          adds = true;
        }
      }
    }
  });
}

void pad_backward(const PadBackwardArgs& a, Stream&) {
  dispatch_wide(a.g.dtype, "pad_backward", [&]<class T>() { pad_backward<T>(a); });
}

}  // namespace

}  // namespace cpu

LEVIN_HOST_ONLY(PadArgs, pad, cpu::pad, "on CUDA padding is composed of copies of slices");
LEVIN_HOST_ONLY(PadBackwardArgs, pad_backward, cpu::pad_backward, "on CUDA the gradient is composed of sums of slices");

}  // namespace levin::kernels
