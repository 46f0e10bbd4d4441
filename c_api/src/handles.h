#pragma once
// The handles of the C interface, and the way from an exception to a status.

#include <levin/c_api/levin.h>
#include <levin/core/error.h>
#include <levin/nn/module.h>
#include <levin/optim/optimizer.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

struct levin_model {
  std::shared_ptr<levin::nn::Module> module;
};

struct levin_outputs {
  struct Entry {
    levin::Tensor tensor;  // contiguous, on the CPU
    std::vector<int64_t> shape;
    levin_dtype dtype;
  };
  std::vector<Entry> entries;
};

struct levin_trainer {
  std::shared_ptr<levin::nn::Module> module;
  std::function<levin::Tensor(const levin::Tensor& output, const levin::Tensor& target)> loss;
  std::unique_ptr<levin::optim::Optimizer> optimizer;
};

namespace levin::c_api {

/// Remembers the exception that is being handled as this thread's last error, and returns its status.
levin_status report() noexcept;

/// Runs the body of a function of the interface.
template <class F>
levin_status guarded(F&& body) noexcept {
  try {
    body();
    return LEVIN_OK;
  } catch (...) {
    return report();
  }
}

/// Throws ValueError if a pointer that `function` needs is null.
void require(const char* function, const char* name, const void* pointer);

/// Returns a tensor with a copy of the array's values; `name` is used in messages. Throws ValueError for an array that
/// is not one.
Tensor tensor_of(const char* function, const std::string& name, const levin_array* array);
std::vector<Tensor> tensors_of(const char* function, const levin_array* inputs, size_t count);
/// Throws DTypeError for types that levin_dtype does not have.
levin_outputs::Entry output_of(const Tensor& tensor);

}  // namespace levin::c_api
