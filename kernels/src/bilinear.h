#pragma once
// Bilinear sampling of one image, for both devices.

#include "everywhere.h"

#include <cstdint>

namespace levin::kernels::sampling {

/// The two pixels of an axis around a position, and how far it lies from the first one.
template <class C>
struct Neighbours {
  std::int64_t first = -2;  ///< this one and the next are outside if the position is, or if it is NaN
  C rest;

  LEVIN_EVERYWHERE Neighbours(C at, std::int64_t size) : rest(at - at) {  // NaN stays NaN
    if (!(at > C(-1) && at < static_cast<C>(size))) return;
    first = static_cast<std::int64_t>(at);
    if (at < static_cast<C>(first)) --first;
    rest = at - static_cast<C>(first);
  }
};

/// The four pixels around a position, row by row.
template <class C>
struct Corners {
  std::int64_t place[4];  ///< in the image; negative for a pixel outside
  C down, right;          ///< from the first pixel to the position

  Corners() = default;
  LEVIN_EVERYWHERE Corners(C row, C column, std::int64_t h, std::int64_t w) {
    const Neighbours<C> y(row, h), x(column, w);
    down = y.rest;
    right = x.rest;
    for (int k = 0; k < 4; ++k) {
      const std::int64_t i = y.first + k / 2, j = x.first + k % 2;
      place[k] = i >= 0 && i < h && j >= 0 && j < w ? i * w + j : -1;
    }
  }

  /// Returns pixel k, where read(place) reads a pixel of the image; `whole` states that all four are in the image.
  template <bool whole = false, class Read>
  LEVIN_EVERYWHERE C pixel(int k, const Read& read) const {
    return !whole && place[k] < 0 ? C(0) : read(place[k]);
  }
  template <bool whole = false, class Read>
  LEVIN_EVERYWHERE C value(const Read& read) const {
    const C above = pixel<whole>(0, read) * (C(1) - right) + pixel<whole>(1, read) * right;
    const C below = pixel<whole>(2, read) * (C(1) - right) + pixel<whole>(3, read) * right;
    return above * (C(1) - down) + below * down;
  }
  LEVIN_EVERYWHERE C weight(int k) const {
    return (k / 2 == 1 ? down : C(1) - down) * (k % 2 == 1 ? right : C(1) - right);
  }
};

}  // namespace levin::kernels::sampling
