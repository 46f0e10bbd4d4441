// Errors, arrays and outputs of the C interface.
#include "handles.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/view.h>
#include <levin/core/config.h>
#include <levin/core/parallel.h>
#include <levin/core/generator.h>

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <new>

namespace levin::c_api {

namespace {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

levin_status remember(levin_status status, const char* text) noexcept {
  try {
    last_error() = text;
  } catch (...) {
    last_error().clear();  // there is no memory for the sentence; the status remains
  }
  return status;
}

struct Type {
  levin_dtype c;
  DType levin;
};
constexpr Type kTypes[] = {{LEVIN_FLOAT32, DType::f32}, {LEVIN_FLOAT64, DType::f64}, {LEVIN_INT64, DType::i64},
                           {LEVIN_INT32, DType::i32},   {LEVIN_INT8, DType::i8},     {LEVIN_UINT8, DType::u8},
                           {LEVIN_BOOL, DType::boolean}};

DType dtype_of(const char* function, const std::string& name, levin_dtype dtype) {
  for (const Type& t : kTypes)
    if (t.c == dtype) return t.levin;
  throw ValueError(fmt::format("[{}] the dtype of {} is {}, which is no levin_dtype. Use LEVIN_FLOAT32 to LEVIN_BOOL.",
                               function, name, static_cast<int>(dtype)));
}

Shape shape_of(const char* function, const std::string& name, const levin_array& array) {
  if (array.ndim < 0 || array.ndim > kMaxDims)
    throw ValueError(
        fmt::format("[{}] {} has {} dimensions. An array has 0 to {}.", function, name, array.ndim, kMaxDims));
  if (array.ndim > 0) require(function, (name + ".shape").c_str(), array.shape);
  Shape sizes;
  int64_t elements = 1;
  for (int i = 0; i < array.ndim; ++i) {
    const int64_t size = array.shape[i];
    if (size < 0 || (size > 0 && elements > std::numeric_limits<int64_t>::max() / 16 / size))
      throw ValueError(fmt::format("[{}] size {} of {} is {}, which no array has.", function, i, name, size));
    elements *= std::max<int64_t>(size, 1);
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

levin_status report() noexcept {
  try {
    throw;
  } catch (const OutOfMemory& e) {
    return remember(LEVIN_OUT_OF_MEMORY, e.what());
  } catch (const ShapeError& e) {
    return remember(LEVIN_SHAPE_ERROR, e.what());
  } catch (const DTypeError& e) {
    return remember(LEVIN_DTYPE_ERROR, e.what());
  } catch (const IoError& e) {
    return remember(LEVIN_IO_ERROR, e.what());
  } catch (const StateError& e) {
    return remember(LEVIN_STATE_ERROR, e.what());
  } catch (const GradError& e) {
    return remember(LEVIN_GRADIENT_ERROR, e.what());
  } catch (const ValueError& e) {
    return remember(LEVIN_INVALID_ARGUMENT, e.what());
  } catch (const IndexError& e) {
    return remember(LEVIN_INVALID_ARGUMENT, e.what());
  } catch (const std::bad_alloc&) {
    return remember(LEVIN_OUT_OF_MEMORY, "[levin] there is not enough memory. Use a smaller batch or model.");
  } catch (const std::exception& e) {
    return remember(LEVIN_INTERNAL_ERROR, e.what());
  } catch (...) {
    return remember(LEVIN_INTERNAL_ERROR, "[levin] an exception of an unknown type was thrown.");
  }
}

void require(const char* function, const char* name, const void* pointer) {
  if (!pointer) throw ValueError(fmt::format("[{}] {} is null.", function, name));
}

Tensor tensor_of(const char* function, const std::string& name, const levin_array* array) {
  require(function, name.c_str(), array);
  const DType dtype = dtype_of(function, name, array->dtype);
  const Tensor t = empty(shape_of(function, name, *array), {.dtype = dtype});
  if (t.numel() == 0) return t;
  require(function, (name + ".data").c_str(), array->data);
  std::memcpy(t.raw_data(), array->data, static_cast<std::size_t>(t.numel() * size_of(dtype)));
  if (dtype != DType::boolean) return t;
  const auto* const bytes = static_cast<const std::uint8_t*>(array->data);  // other values would not be a bool
  for (int64_t i = 0; i < t.numel(); ++i)
    if (bytes[i] > 1)
      throw ValueError(
          fmt::format("[{}] element {} of {} is {}; a LEVIN_BOOL is 0 or 1.", function, i, name, bytes[i]));
  return t;
}

std::vector<Tensor> tensors_of(const char* function, const levin_array* inputs, size_t count) {
  if (count > 0) require(function, "inputs", inputs);
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < count; ++i)
    tensors.push_back(tensor_of(function, fmt::format("input {}", i), inputs + i));
  return tensors;
}

levin_outputs::Entry output_of(const Tensor& tensor) {
  Tensor t = tensor.detach().cpu().contiguous();
  if (t.dtype() == DType::f16 || t.dtype() == DType::bf16) t = t.to(DType::f32);
  for (const Type& type : kTypes)
    if (type.levin == t.dtype()) return {t, {t.sizes().begin(), t.sizes().end()}, type.c};
  throw DTypeError(fmt::format("[levin_model_forward] an output is {}, which the C interface does not have.",
                               name_of(t.dtype())));
}

}  // namespace levin::c_api

using namespace levin;
using namespace levin::c_api;

#define LEVIN_TEXT_OF(x) #x
#define LEVIN_TEXT(x) LEVIN_TEXT_OF(x)

const char* levin_version(void) {
  return LEVIN_TEXT(LEVIN_VERSION_MAJOR) "." LEVIN_TEXT(LEVIN_VERSION_MINOR) "." LEVIN_TEXT(LEVIN_VERSION_PATCH);
}

const char* levin_last_error(void) { return last_error().c_str(); }

levin_status levin_set_num_threads(int32_t threads) {
  return guarded([&] { set_num_threads(threads); });
}

int32_t levin_num_threads(void) { return num_threads(); }

levin_status levin_manual_seed(uint64_t seed) {
  return guarded([&] { manual_seed(seed); });
}

size_t levin_outputs_count(const levin_outputs* outputs) { return outputs ? outputs->entries.size() : 0; }

levin_status levin_outputs_get(const levin_outputs* outputs, size_t index, levin_array* array) {
  return guarded([&] {
    require("levin_outputs_get", "outputs", outputs);
    require("levin_outputs_get", "array", array);
    if (index >= outputs->entries.size())
      throw ValueError(fmt::format("[levin_outputs_get] output {} is asked for, and there are {}.", index,
                                   outputs->entries.size()));
    const levin_outputs::Entry& e = outputs->entries[index];
    *array = {e.tensor.raw_data(), e.dtype, static_cast<int32_t>(e.shape.size()), e.shape.data()};
  });
}

void levin_outputs_free(levin_outputs* outputs) { delete outputs; }
