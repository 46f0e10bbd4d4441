#pragma once
// Parts of an index expression beside numbers and tensors: x(3, Slice(1, -1), Ellipsis, nil, mask).

#include <concepts>
#include <cstdint>
#include <optional>

namespace levin {

/// Stands for Python's None: an absent bound in a Slice, or a new axis of size 1 as an index.
struct Nil {};
inline constexpr Nil nil{};  ///< Python's None

/// Stands for as many full slices as there are axes without an index.
struct EllipsisType {};
inline constexpr EllipsisType Ellipsis{};  ///< Python's "..."

/// start:stop:step with Python's meaning of absent and negative bounds; bounds outside of the axis are clamped to it.
/// The step must be positive, else slicing throws ValueError. Slice() is the whole axis.
struct Slice {
  /// A number, or nil for an absent one.
  struct Bound {
    std::optional<std::int64_t> value;  ///< empty for nil
    /// Convert from nil or an integer.
    Bound(Nil) {}  // NOLINT: implicit
    Bound(std::integral auto v) : value(static_cast<std::int64_t>(v)) {}  // NOLINT
  };
  Slice() = default;
  /// Selects start, start + step, ... below stop.
  Slice(Bound start_, Bound stop_, Bound step_ = nil)
      : start(start_.value), stop(stop_.value), step(step_.value.value_or(1)) {}
  std::optional<std::int64_t> start, stop;  ///< empty: from the first element, to the last one
  std::int64_t step = 1;                    ///< distance of the elements
};

/// An index of this type selects without copying: the result is a view.
template <class I>
inline constexpr bool kSelectsView = (std::integral<I> && !std::same_as<I, bool>) || std::same_as<I, Slice> ||
                                     std::same_as<I, Nil> || std::same_as<I, EllipsisType>;

}  // namespace levin
