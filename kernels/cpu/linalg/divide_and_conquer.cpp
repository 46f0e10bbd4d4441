// The eigenvalues of a tridiagonal matrix by divide and conquer (Cuppen, 1981): without the element that couples them,
// which a matrix of rank one replaces, both halves are solved alone, and the secular equation joins their solutions.

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/linalg/secular.h"
#include "kernels/cpu/linalg/tridiagonal.h"

#include <atomic>
#include <functional>

namespace levin::kernels::cpu::linalg {

namespace {

constexpr int64_t kLeaf = 32;  // matrices up to this order are solved by rotations

struct Range {
  int64_t begin, end;
};

/// Two solved halves of one block of the matrix.
template <class T>
class Merge {
 public:
  /// The block of `size` elements begins at d and in column 0 of the lines, which are `stride` apart; its first half
  /// has `split`. `coupling` is the element between the halves.
  Merge(double* d, double coupling, int64_t split, int64_t size, T* lines, int64_t stride)
      : d_(d),
        split_(split),
        size_(size),
        lines_(lines),
        stride_(stride),
        places_(static_cast<std::size_t>(size), Place::kFirst) {
    problem_.rho = 2 * std::abs(coupling);  // for z of length 1
    z_.resize(static_cast<std::size_t>(size));
    const double sign = coupling < 0 ? -1 : 1, half = std::sqrt(0.5);
    for (int64_t i = 0; i < size; ++i) {
      const T* line = lines + i * stride;
      at(z_, i) = half * (i < split ? static_cast<double>(line[split - 1]) : sign * static_cast<double>(line[split]));
      if (i >= split) at(places_, i) = Place::kSecond;
    }
  }

  bool run() {
    deflate();
    if (kept_.empty()) return true;
    for (const int64_t line : kept_) {
      problem_.poles.push_back(d_[line]);
      problem_.z.push_back(at(z_, line));
    }
    SecularRoots found;
    if (!find_roots(problem_, found)) return false;
    refine(problem_, found);
    combine(found);
    for (std::size_t i = 0; i < kept_.size(); ++i) d_[kept_[i]] = found.roots[i];
    return true;
  }

 private:
  /// The columns in which a line has values: those of the first half, of both, or of the second.
  enum class Place : char { kFirst, kBoth, kSecond };

  template <class V>
  static auto& at(V& v, int64_t i) {
    return v[static_cast<std::size_t>(i)];
  }

  /// Leaves out the lines that are eigenvectors of the whole block within rounding: those without a part of z, and one
  /// of each two with equal values, after a rotation that gives the other one their parts of z.
  void deflate() {
    Buffer<double> values(d_, d_ + size_);
    double most = problem_.rho;
    for (const double v : values) most = std::max(most, std::abs(v));
    const double tolerance = 4 * static_cast<double>(std::numeric_limits<T>::epsilon()) * most;
    int64_t before = -1;
    for (const std::size_t index : order(values, std::less<>())) {
      const auto i = static_cast<int64_t>(index);
      if (problem_.rho * std::abs(at(z_, i)) <= tolerance) continue;
      if (before >= 0) {
        const double length = std::hypot(at(z_, i), at(z_, before));
        const double c = at(z_, i) / length, s = -at(z_, before) / length, gap = d_[i] - d_[before];
        if (std::abs(gap * c * s) > tolerance)
          kept_.push_back(before);
        else
          join(before, i, {c, s}, length);
      }
      before = i;
    }
    if (before >= 0) kept_.push_back(before);
  }

  void join(int64_t left, int64_t right, Rotation<double> turn, double length) {
    const double c = turn.c * turn.c, s = turn.s * turn.s, x = d_[left], y = d_[right];
    d_[left] = x * c + y * s;
    d_[right] = x * s + y * c;
    at(z_, right) = length;
    if (at(places_, left) != at(places_, right)) at(places_, left) = at(places_, right) = Place::kBoth;
    const Chain chain{left, right - left, 0, 1};
    const Rotation<T> rounded{static_cast<T>(turn.c), static_cast<T>(turn.s)};
    rotate(lines_, stride_, size_, &chain, 1, &rounded);
  }

  /// Replaces the lines that are kept by the eigenvectors. Their products with the lines, sorted by place, leave out
  /// the half in which those are zero.
  void combine(const SecularRoots& found) {
    const auto k = static_cast<int64_t>(kept_.size());
    std::vector<int64_t> sorted(kept_.size());  // numbers of lines that are kept
    std::iota(sorted.begin(), sorted.end(), int64_t{0});
    const auto place = [&](int64_t number) { return at(places_, at(kept_, number)); };
    std::stable_sort(sorted.begin(), sorted.end(), [&](int64_t a, int64_t b) { return place(a) < place(b); });
    const auto count = [&](Place p) {
      return static_cast<int64_t>(std::count_if(sorted.begin(), sorted.end(), [&](auto i) { return place(i) == p; }));
    };
    const int64_t first = count(Place::kFirst), both = count(Place::kBoth);

    Buffer<T> factors(static_cast<std::size_t>(k * k)), old(static_cast<std::size_t>(k * size_)), made(old.size());
    parallel_for(0, k, std::max<int64_t>(1, 8192 / k), [&](int64_t b, int64_t e) {
      Buffer<double> vector(kept_.size());
      for (int64_t i = b; i < e; ++i) {
        std::fill(vector.begin(), vector.end(), 1.0);
        multiply_by_ratios(k, problem_.z.data(), found.deltas.data() + i * k, 0.0, vector.data());
        const double scale = 1 / std::sqrt(product(k, vector.data(), vector.data()));
        for (int64_t j = 0; j < k; ++j) at(factors, i * k + j) = static_cast<T>(scale * at(vector, at(sorted, j)));
      }
    });
    for (int64_t j = 0; j < k; ++j) {
      const T* line = lines_ + at(kept_, at(sorted, j)) * stride_;
      std::copy(line, line + size_, old.data() + j * size_);
    }
    multiply(factors.data(), k, {0, first + both}, old.data(), made.data(), {0, split_});
    multiply(factors.data(), k, {first, k}, old.data(), made.data(), {split_, size_});
    for (int64_t i = 0; i < k; ++i) std::copy_n(made.data() + i * size_, size_, lines_ + at(kept_, i) * stride_);
  }

  /// Columns `columns` of `made` (k, size) are the product of columns `terms` of `factors` (k, k) and these rows of
  /// `old`.
  void multiply(const T* factors, int64_t k, Range terms, const T* old, T* made, Range columns) const {
    if (terms.begin == terms.end) {
      for (int64_t i = 0; i < k; ++i) std::fill(made + i * size_ + columns.begin, made + i * size_ + columns.end, T(0));
      return;
    }
    gemm({.m = k,
          .n = columns.end - columns.begin,
          .k = terms.end - terms.begin,
          .a = factors + terms.begin,
          .a_rs = k,
          .a_cs = 1,
          .b = old + terms.begin * size_ + columns.begin,
          .b_rs = size_,
          .b_cs = 1,
          .c = made + columns.begin,
          .c_rs = size_});
  }

  double* d_;
  int64_t split_, size_;
  T* lines_;
  int64_t stride_;
  std::vector<Place> places_;
  Buffer<double> z_;
  Secular problem_;
  std::vector<int64_t> kept_;  ///< lines, in the order of their values
};

/// Solves one leaf, whose lines begin at its place on the diagonal of the whole.
template <class T>
bool solve_leaf(double* d, double* e, int64_t n, T* lines, int64_t stride) {
  Buffer<T> identity(static_cast<std::size_t>(n * n));
  for (int64_t i = 0; i < n; ++i) identity[static_cast<std::size_t>(i * n + i)] = T(1);
  RotatedLines<T> vectors(std::move(identity), n);
  if (!diagonalize(d, e, n, vectors)) return false;
  for (int64_t i = 0; i < n; ++i) std::copy_n(vectors.line(i), n, lines + i * stride);
  return true;
}

/// Lists the leaves of a range and the blocks that are joined of two, each after its halves.
void divide(Range range, std::vector<Range>& leaves, std::vector<Range>& blocks) {
  if (range.end - range.begin <= kLeaf) return leaves.push_back(range);
  const int64_t middle = (range.begin + range.end) / 2;
  divide({range.begin, middle}, leaves, blocks);
  divide({middle, range.end}, leaves, blocks);
  blocks.push_back(range);
}

}  // namespace

template <class T>
bool divide_and_conquer(double* d, double* e, int64_t n, T* lines) {
  std::vector<Range> leaves, blocks;
  divide({0, n}, leaves, blocks);
  for (const Range leaf : leaves) {
    if (leaf.begin == 0) continue;
    const double coupling = std::abs(e[leaf.begin - 1]);
    d[leaf.begin - 1] -= coupling;
    d[leaf.begin] -= coupling;
  }
  std::atomic<bool> solved{true};
  parallel_for(0, static_cast<int64_t>(leaves.size()), 1, [&](int64_t b, int64_t to) {
    for (int64_t i = b; i < to; ++i) {
      const Range r = leaves[static_cast<std::size_t>(i)];
      if (!solve_leaf(d + r.begin, e + r.begin, r.end - r.begin, lines + r.begin * (n + 1), n)) solved = false;
    }
  });
  if (!solved) return false;
  for (const Range block : blocks) {
    const int64_t middle = (block.begin + block.end) / 2;
    Merge<T> merge(d + block.begin, e[middle - 1], middle - block.begin, block.end - block.begin,
                   lines + block.begin * (n + 1), n);
    if (!merge.run()) return false;
  }
  return true;
}

template bool divide_and_conquer(double*, double*, int64_t, float*);
template bool divide_and_conquer(double*, double*, int64_t, double*);

}  // namespace levin::kernels::cpu::linalg
