#pragma once
// The SIMD functions of the recurrent cells, chosen at run time. Each computes one sample.

#include <cstdint>

namespace levin::kernels::cpu {

enum Cell { kRnnTanh, kRnnRelu, kGru, kLstm };

/// Gate i of x, s and gates (may be null) begins at i * n.
template <class T>
struct CellRow {
  T *h_next, *c_next, *gates;
  const T *x, *s, *h, *c;
  std::int64_t n;
};

template <class T>
struct CellBackwardRow {
  T *dx, *ds, *dh, *dc;
  const T *g, *gates, *h_next, *c_next, *h, *c;
  std::int64_t n;
};

/// Indexed by Cell.
template <class T>
struct CellRows {
  void (*forward[4])(const CellRow<T>& row);
  void (*backward[4])(const CellBackwardRow<T>& row);
};

const CellRows<float>& cell_rows(float);
const CellRows<double>& cell_rows(double);

}  // namespace levin::kernels::cpu
