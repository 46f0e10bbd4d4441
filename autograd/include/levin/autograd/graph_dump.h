#pragma once
// The gradient graph as text, for people, and the memory that it holds.

#include <levin/core/tensor.h>

#include <string>
#include <vector>

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

/// The memory of the tensors that one recorded operation saved for backward.
struct OperationMemory {
  std::size_t number = 0;  ///< number of the operation in graph_text
  std::string name{};      ///< "mul", ...
  Shape sizes{};           ///< sizes of its result
  int64_t bytes = 0;       ///< bytes that it saved, less those that operations above it in graph_text saved too
};
/// The memory that a graph holds for backward.
struct GraphMemory {
  std::vector<OperationMemory> rows;  ///< operations that hold memory, the largest first
  int64_t bytes = 0;                    ///< of all rows; backward frees them unless someone else holds the tensors
  /// Returns a table of the sums of operations of one name, the largest first.
  std::string text() const;
};
/// Returns the bytes that the graph below y holds for backward. Memory that several operations saved counts once, for
/// the one next to y; memory of leaves (parameters) does not count, since it lives as long as they do; nor do the
/// values that saved_tensors_hooks made of tensors.
GraphMemory graph_memory(const Tensor& y);

}  // namespace levin
