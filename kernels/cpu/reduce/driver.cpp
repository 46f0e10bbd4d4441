// The driver of all reductions. Axes are sorted by stride and merged; then either lines of memory are reduced to one
// number each, or lines are added element by element. Long reductions are split into chunks, whose results are combined
// in order.
#include "kernels/cpu/reduce/reduce.h"
#include "kernels/cpu/scratch.h"

#include <levin/core/parallel.h>

#include <algorithm>

namespace levin::kernels::cpu {

namespace {

constexpr int64_t kChunk = 32768;    // minimum elements of a task
constexpr int64_t kColumnTile = 512;       // columns of one task
constexpr int64_t kManyTasks = 64;   // from this many tasks on nothing is split
constexpr int64_t kBatch = 64;       // results that are stored together

struct Axis {
  int64_t size, x, out;  // strides in elements
};

struct Axes {
  int count = 0;
  Axis axis[kMaxDims];

  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < count; ++i) n *= axis[i].size;
    return n;
  }
  const Axis& back() const { return axis[count - 1]; }
  Axes without_last() const {
    Axes a = *this;
    a.count = std::max(0, count - 1);
    return a;
  }
  /// Sorts by stride, the largest first, and merges axes that are evenly spaced.
  void simplify() {
    for (int i = 1; i < count; ++i)
      for (int k = i; k > 0 && axis[k - 1].x < axis[k].x; --k) std::swap(axis[k - 1], axis[k]);
    int kept = 0;
    for (int i = 1; i < count; ++i) {
      Axis& a = axis[kept];
      const Axis& b = axis[i];
      if (a.x == b.x * b.size && a.out == b.out * b.size) {
        a = {a.size * b.size, b.x, b.out};
      } else {
        axis[++kept] = b;
      }
    }
    count = std::min(count, kept + 1);
  }
  /// Computes the positions of the element with a row-major index.
  void locate(int64_t index, int64_t& x_at, int64_t& out_at) const {
    for (int i = count - 1; i >= 0; --i) {
      const int64_t k = index % axis[i].size;
      index /= axis[i].size;
      x_at += k * axis[i].x;
      out_at += k * axis[i].out;
    }
  }
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class Acc>
class Job {
 public:
  Job(const TensorView& out, const TensorView& x, const Reducer<Acc>& r, const Finish& finish, double p)
      : r_(r), finish_(finish), p_(p), x_(x.data<std::byte>()), out_(out.data<std::byte>()), x_size_(size_of(x.dtype)),
        out_dtype_(out.dtype) {}

  void run(const TensorView& out, const TensorView& x) {
    const int64_t numel = x.numel();
    if (out.numel() == 1 && numel <= kChunk && x.is_contiguous()) {
      Acc acc = r_.neutral;
      r_.rows({x_, 1, 0, numel, 1, p_}, &acc);
      store(&acc, 1, 0, 0);
      return;
    }
    for (int d = 0; d < x.dim(); ++d) {
      if (x.size(d) == 1) continue;
      Axes& list = out.size(d) == 1 ? reduced_ : kept_;
      list.axis[list.count++] = {x.size(d), x.stride(d), out.size(d) == 1 ? 0 : out.stride(d)};
    }
    if (reduced_.count == 0) reduced_.axis[reduced_.count++] = {1, 0, 0};
    kept_.simplify();
    reduced_.simplify();
    if (kept_.numel() == 0) return;
    const bool by_columns = kept_.count > 0 && (kept_.back().x < reduced_.back().x || reduced_.numel() == 1);
    by_columns ? columns() : rows();
  }

 private:
  const std::byte* at(int64_t x_at) const { return x_ + x_at * x_size_; }

  void store(Acc* acc, int64_t n, int64_t out_at, int64_t out_stride) const {
    if (finish_.kind != Finish::Kind::none)
      for (int64_t i = 0; i < n; ++i) acc[i] = finish_(acc[i]);
    dispatch_all(out_dtype_, "reduce", [&]<class T>() {
      T* to = reinterpret_cast<T*>(out_) + out_at;
      for (int64_t i = 0; i < n; ++i) to[i * out_stride] = static_cast<T>(acc[i]);
    });
  }

  /// Calls f(x_at, count) for runs of rows with constant spacing: rows [begin, end) of the axes.
  template <class F>
  static void for_runs(const Axes& axes, int64_t begin, int64_t end, F&& f) {
    const int64_t length = axes.count ? axes.back().size : 1;
    while (begin < end) {
      int64_t x_at = 0, out_at = 0;
      axes.locate(begin, x_at, out_at);
      const int64_t n = std::min(length - begin % length, end - begin);
      f(x_at, out_at, n);
      begin += n;
    }
  }

  /// Reduces lines begin..end of the reduced axes without the last, `n` elements from `first` of each, into *acc.
  void reduce_lines(const Axes& lines, int64_t x_at, int64_t begin, int64_t end, int64_t first, int64_t n,
                    Acc* acc) const {
    const Axis& line = reduced_.back();
    const int64_t step = lines.count ? lines.back().x : 0;
    for_runs(lines, begin, end, [&](int64_t line_at, int64_t, int64_t count) {
      r_.rows({at(x_at + line_at + first * line.x), count, step, n, line.x, p_}, acc);
    });
  }

  /// Computes each result from lines along the last reduced axis.
  void rows() {
    const Axes lines = reduced_.without_last();
    const int64_t n = reduced_.back().size, line_count = lines.numel(), work = n * line_count;
    const int64_t outputs = kept_.numel(), out_stride = kept_.count ? kept_.back().out : 0;
    const int64_t x_stride = kept_.count ? kept_.back().x : 0;
    if (outputs >= kManyTasks || work <= kChunk) {
      parallel_for(0, outputs, std::max<int64_t>(1, kChunk / std::max<int64_t>(1, work)), [&](int64_t b, int64_t e) {
        for_runs(kept_, b, e, [&](int64_t x_at, int64_t out_at, int64_t run) {
          Acc acc[kBatch];
          for (int64_t done = 0; done < run; done += kBatch) {
            const int64_t m = std::min(kBatch, run - done);
            for (int64_t i = 0; i < m; ++i) {
              acc[i] = r_.neutral;
              reduce_lines(lines, x_at + (done + i) * x_stride, 0, line_count, 0, n, &acc[i]);
            }
            store(acc, m, out_at + done * out_stride, out_stride);
          }
        });
      });
      return;
    }
    // If there are few results of many elements, each is split along its lines, or its lines into pieces.
    const int64_t pieces = n >= kChunk ? ceil_div(n, kChunk) : 1;
    const int64_t lines_each = n >= kChunk ? 1 : std::min(line_count, kChunk / std::max<int64_t>(1, n));
    const int64_t cuts = ceil_div(line_count, lines_each) * pieces;
    Acc* const partial = scratch<Acc>(Slot::reduce, outputs * cuts);  // (outputs, cuts)
    parallel_for(0, outputs * cuts, 1, [&](int64_t b, int64_t e) {
      for (int64_t task = b; task < e; ++task) {
        const int64_t cut = task % cuts, first_line = cut / pieces * lines_each, first = cut % pieces * kChunk;
        int64_t x_at = 0, out_at = 0;
        kept_.locate(task / cuts, x_at, out_at);
        Acc acc = r_.neutral;
        reduce_lines(lines, x_at, first_line, std::min(first_line + lines_each, line_count), first,
                     pieces == 1 ? n : std::min(kChunk, n - first), &acc);
        partial[task] = acc;
      }
    });
    for (int64_t o = 0; o < outputs; ++o) {
      Acc acc = partial[o * cuts];
      for (int64_t cut = 1; cut < cuts; ++cut) acc = r_.combine(acc, partial[o * cuts + cut]);
      int64_t x_at = 0, out_at = 0;
      kept_.locate(o, x_at, out_at);
      store(&acc, 1, out_at, 0);
    }
  }

  /// Combines lines along the last kept axis element by element.
  void columns() {
    const Axes outer = kept_.without_last();
    const Axis& line = kept_.back();
    const int64_t tiles = ceil_div(line.size, kColumnTile), blocks = outer.numel() * tiles, lines = reduced_.numel();
    const int64_t width = std::min(line.size, kColumnTile);
    const bool whole = blocks >= kManyTasks || lines * width <= kChunk;
    const int64_t lines_each = whole ? lines : std::max<int64_t>(16, kChunk / width);
    const int64_t cuts = whole ? 1 : ceil_div(lines, lines_each);
    // (blocks, cuts, kColumnTile)
    Acc* const partial = whole ? nullptr : scratch<Acc>(Slot::reduce, blocks * cuts * kColumnTile);
    const int64_t work = std::max<int64_t>(1, std::min(lines, lines_each) * width);
    parallel_for(0, blocks * cuts, std::max<int64_t>(1, kChunk / work), [&](int64_t b, int64_t e) {
      Acc own[kColumnTile];
      for (int64_t task = b; task < e; ++task) {
        const int64_t block = task / cuts, begin = task % cuts * lines_each;
        Acc* const acc = whole ? own : partial + task * kColumnTile;
        int64_t x_at = block % tiles * kColumnTile * line.x, out_at = block % tiles * kColumnTile * line.out;
        outer.locate(block / tiles, x_at, out_at);
        const int64_t n = std::min(kColumnTile, line.size - block % tiles * kColumnTile);
        std::fill(acc, acc + n, r_.neutral);
        for_runs(reduced_, begin, std::min(begin + lines_each, lines), [&](int64_t line_at, int64_t, int64_t count) {
          r_.columns({at(x_at + line_at), count, reduced_.back().x, n, line.x, p_}, acc);
        });
        if (whole) store(acc, n, out_at, line.out);
      }
    });
    if (whole) return;
    for (int64_t block = 0; block < blocks; ++block) {
      Acc* const acc = partial + block * cuts * kColumnTile;
      const int64_t n = std::min(kColumnTile, line.size - block % tiles * kColumnTile);
      for (int64_t cut = 1; cut < cuts; ++cut)
        for (int64_t i = 0; i < n; ++i) acc[i] = r_.combine(acc[i], acc[cut * kColumnTile + i]);
      int64_t x_at = 0, out_at = block % tiles * kColumnTile * line.out;
      outer.locate(block / tiles, x_at, out_at);
      store(acc, n, out_at, line.out);
    }
  }

  const Reducer<Acc>& r_;
  const Finish finish_;
  const double p_;
  const std::byte* x_;
  std::byte* out_;
  int64_t x_size_;
  DType out_dtype_;
  Axes kept_, reduced_;
};

}  // namespace

void reduce(const TensorView& out, const TensorView& x, const Reducer<double>& r, Finish finish, double p) {
  Job<double>(out, x, r, finish, p).run(out, x);
}
void reduce(const TensorView& out, const TensorView& x, const Reducer<int64_t>& r, Finish finish, double p) {
  Job<int64_t>(out, x, r, finish, p).run(out, x);
}

}  // namespace levin::kernels::cpu
