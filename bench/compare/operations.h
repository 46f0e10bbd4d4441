#pragma once

#include <functional>
#include <string>

/// Receives the operations of operations.cpp and sizes.cpp.
struct OperationVisitor {
  /// Whether the row of this name is visited.
  std::function<bool(const std::string& name)> wanted;
  /// `bytes` returns the least traffic of a call: inputs and outputs once, and with gradients those too. `run` is one
  /// call; it owns its inputs.
  std::function<void(const std::string& name, const std::function<double()>& bytes, const std::function<void()>& run)>
      visit;
};

/// Visits the wanted rows in order, `NAME fwd` and `NAME fwd+bwd`.
void for_each_operation(const OperationVisitor& visitor);
void for_each_size(const OperationVisitor& visitor);

/// Receives the products of gemm.cpp.
struct ProductVisitor {
  std::function<bool(const std::string& name)> wanted;
  std::function<void(const std::string& name, double flops, const std::function<void()>& run)> visit;
};

void for_each_product(const ProductVisitor& visitor);
