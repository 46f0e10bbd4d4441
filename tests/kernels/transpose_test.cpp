// Transposed copies of a tile.
#include "kernels/cpu/transpose.h"
#include "on_every_target.h"

#include <cstring>
#include <numeric>
#include <vector>

using namespace levin;
using namespace levin::kernels::cpu;

namespace {

/// Returns whether transpose_tile transposes `rows` x `columns` elements and writes nothing beside them.
template <class T>
bool is_transposed(int64_t rows, int64_t columns) {
  const int64_t in_stride = columns + 3, out_stride = rows + 5;
  std::vector<T> in(static_cast<std::size_t>(rows * in_stride));
  std::vector<T> expected(static_cast<std::size_t>(columns * out_stride));
  std::iota(in.begin(), in.end(), T(1));
  std::vector<T> out = expected;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      expected[static_cast<std::size_t>(c * out_stride + r)] = in[static_cast<std::size_t>(r * in_stride + c)];
  transpose_tile(sizeof(T), out.data(), out_stride, in.data(), in_stride, rows, columns);
  return std::memcmp(out.data(), expected.data(), out.size() * sizeof(T)) == 0;
}

}  // namespace

TEST_CASE_TEMPLATE("transposed tiles of any height and width, in every element size", T, std::uint8_t,
                   std::uint16_t, std::uint32_t, std::uint64_t) {
  test::on_every_target([] {
    for (const int64_t rows : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 33, 56, 63, 64})
      for (const int64_t columns : {1, 2, 3, 4, 5, 16, 30, 32, 61, 64})
        CHECK_MESSAGE(is_transposed<T>(rows, columns), rows, " x ", columns, " of ", sizeof(T), " bytes");
  });
}
