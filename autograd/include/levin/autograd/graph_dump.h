#pragma once
// The gradient graph as text, for people.

#include <levin/core/tensor.h>

#include <string>

namespace levin {

/// Returns one line for each recorded operation below y, y's own first: number, name, the sizes of its result, and the
/// numbers of the operations that get its gradients. Leaves are lines of their own.
///
///   0 sum () <- 1
///   1 mul (2, 3) <- 2, 3
///   2 leaf (2, 3)
///   3 leaf (3,)
std::string graph_text(const Tensor& y);

/// Returns the same graph in Graphviz's language: `dot -Tsvg graph.dot > graph.svg`.
std::string graph_dot(const Tensor& y);

}  // namespace levin
