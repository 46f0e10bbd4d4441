#pragma once
// Options of the functions that tensor.h declares, and of operations that are members of Tensor.

#include <levin/core/device.h>

#include <functional>
#include <memory>
#include <optional>

namespace levin {

class Generator;

/// Options of creation functions; absent fields have default values.
struct TensorOptions {
  std::optional<DType> dtype{};    ///< default_dtype(), or the data's own type; of x in zeros_like(x) and the others
  std::optional<Device> device{};  ///< the CPU; x's device in zeros_like(x) and the others
  bool requires_grad = false;      ///< the new tensor is a leaf for which gradients are computed
  Generator* generator = nullptr;  ///< default_generator(); random functions only
};

/// Removes a hook. Copies refer to the same hook; an empty handle does nothing.
class HookHandle {
 public:
  HookHandle() = default;
  /// Calls the function `remove` on the first remove(). A handle that ends removes nothing.
  explicit HookHandle(std::function<void()> remove);
  /// Removes the hook; further calls do nothing.
  void remove();

 private:
  std::shared_ptr<std::function<void()>> remove_;
};

/// Arguments of Tensor::backward and levin::backward.
struct BackwardOptions {
  bool retain_graph = false;  ///< keeps what the graph saved, so that backward can run again; implied by create_graph
  bool create_graph = false;  ///< records the backward itself, for gradients of gradients
};

/// How scatter_reduce combines values.
enum class ScatterReduce { sum, mean, prod, amax, amin };

/// Arguments of index_put.
struct IndexPutOptions {
  bool accumulate = false;  ///< adds the values instead; positions that repeat are summed, in a fixed order
};

}  // namespace levin
