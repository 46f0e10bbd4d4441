#include <levin/core/error.h>
#include <levin/interop/dlpack.h>
#include <levin/interop/dlpack_abi.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace levin::interop {

namespace {

constexpr std::uint8_t kBoolCode = 6;  // kDLBool, which older versions of dlpack.h lack

struct NamedType {
  DType dtype;
  std::uint8_t code, bits;
};
constexpr NamedType kDlpackTypes[] = {
    {DType::f64, kDLFloat, 64},    {DType::f32, kDLFloat, 32},   {DType::f16, kDLFloat, 16},
    {DType::bf16, kDLBfloat, 16},  {DType::i64, kDLInt, 64},     {DType::i32, kDLInt, 32},
    {DType::i16, kDLInt, 16},      {DType::i8, kDLInt, 8},       {DType::u8, kDLUInt, 8},
    {DType::boolean, kBoolCode, 8}, {DType::c64, kDLComplex, 64}, {DType::c128, kDLComplex, 128},
};

// Export

/// A handle together with all that it refers to.
template <class Handle>
struct Exported {
  Handle handle{};
  Tensor tensor;
  Shape sizes, strides;
};

DLDevice device_of(const Tensor& t) {
  if (t.device().type == DeviceType::cpu) return {kDLCPU, 0};
  if (t.device().type == DeviceType::cuda) return {kDLCUDA, t.device().index};
  throw DeviceError(
      fmt::format("[to_dlpack] DLPack has no name for the device {}. Share x.cpu().", to_string(t.device())));
}

template <class Handle>
Handle* export_tensor(const Tensor& tensor) {
  if (tensor.requires_grad())
    throw ValueError("[to_dlpack] the tensor requires grad, which another library would not see. Share x.detach().");
  const DLDevice device = device_of(tensor);
  if (tensor.device() != kCpu) device_backend(tensor.device()).synchronize(tensor.device().index);
  const auto type = std::find_if(std::begin(kDlpackTypes), std::end(kDlpackTypes),
                                 [&](const NamedType& t) { return t.dtype == tensor.dtype(); });
  auto exported = std::make_unique<Exported<Handle>>();
  exported->tensor = tensor;
  exported->sizes = tensor.sizes();
  exported->strides = tensor.strides();
  for (int d = 0; d < tensor.dim(); ++d)
    if (tensor.sizes()[d] == 1) exported->strides[d] = 1;  // others take such a tensor for row-major then
  Handle& handle = exported->handle;
  handle.dl_tensor = {tensor.raw_data(), device, tensor.dim(), {type->code, type->bits, 1}, exported->sizes.begin(),
                      exported->strides.begin(), 0};
  handle.manager_ctx = exported.get();
  handle.deleter = [](Handle* self) { delete static_cast<Exported<Handle>*>(self->manager_ctx); };
  return &exported.release()->handle;
}

// Import

struct Layout {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  Device device;
  Shape sizes, strides;  // strides may be negative
};

std::string type_name(DLDataType t) {
  constexpr const char* kCodes[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  const std::string name = t.code < std::size(kCodes) ? kCodes[t.code] : fmt::format("code {} of bits ", t.code);
  return fmt::format("{}{}{}", name, t.bits, t.lanes == 1 ? "" : fmt::format("x{}", t.lanes));
}

DType dtype_of_dlpack(DLDataType t) {
  for (const NamedType& known : kDlpackTypes)
    if (known.code == t.code && known.bits == t.bits && t.lanes == 1) return known.dtype;
  throw DTypeError(
      fmt::format("[from_dlpack] Levin has no type {}. Convert the tensor before sharing it.", type_name(t)));
}

Device device_of_dlpack(DLDevice d) {
  switch (static_cast<int>(d.device_type)) {
    case kDLCPU:
    case kDLCUDAHost: return kCpu;
    case kDLCUDA:
    case kDLCUDAManaged: {
      if (d.device_id < 0 || d.device_id > std::numeric_limits<std::int8_t>::max())
        throw DeviceError(fmt::format("[from_dlpack] there is no device cuda:{}.", d.device_id));
      require_device(cuda(d.device_id));
      return cuda(d.device_id);
    }
    default: break;
  }
  constexpr const char* kNames[] = {"0", "kDLCPU", "kDLCUDA", "kDLCUDAHost", "kDLOpenCL", "5", "6", "kDLVulkan",
                                    "kDLMetal", "kDLVPI", "kDLROCM", "kDLROCMHost", "kDLExtDev"};
  const auto number = static_cast<std::size_t>(d.device_type);
  throw DeviceError(fmt::format("[from_dlpack] the memory is on {}, neither the CPU nor CUDA. Copy it there first.",
                                number < std::size(kNames) ? kNames[number] : fmt::format("device {}", number)));
}

/// Checks the fields that the memory's extent follows from.
Layout layout_of(const DLTensor& t) {
  if (t.ndim < 0 || t.ndim > kMaxDims)
    throw ShapeError(fmt::format("[from_dlpack] the tensor has {} dimensions; at most {} are read.", t.ndim, kMaxDims));
  if (t.ndim > 0 && !t.shape) throw ValueError("[from_dlpack] the shape is a null pointer.");
  Layout out{static_cast<std::byte*>(t.data), dtype_of_dlpack(t.dtype), device_of_dlpack(t.device), {}, {}};
  std::int64_t bytes = size_of(out.dtype), reach = 0;
  bool overflows = false, empty = false;
  for (int d = 0; d < t.ndim; ++d) {
    out.sizes.push_back(t.shape[d]);
    empty = empty || t.shape[d] == 0;
    overflows = overflows || t.shape[d] < 0 ||
                __builtin_mul_overflow(bytes, std::max<std::int64_t>(t.shape[d], 1), &bytes);
  }
  if (overflows)
    throw ValueError(fmt::format("[from_dlpack] the shape {} is negative or has more bytes than memory.",
                                 to_string(out.sizes)));
  out.strides = contiguous_strides(out.sizes);
  for (int d = 0; d < t.ndim && t.strides; ++d) {
    out.strides[d] = t.strides[d];
    std::int64_t step = 0;  // bytes
    overflows = overflows || __builtin_mul_overflow(t.strides[d], size_of(out.dtype), &step) || step == INT64_MIN ||
                __builtin_mul_overflow(std::max<std::int64_t>(t.shape[d] - 1, 0), std::abs(step), &step) ||
                __builtin_add_overflow(reach, step, &reach);
  }
  if (overflows && !empty)
    throw ValueError(fmt::format("[from_dlpack] the strides {} reach beyond memory.", to_string(out.strides)));
  if (!out.data && !empty) throw ValueError("[from_dlpack] the memory is a null pointer.");
  if (out.data) out.data += t.byte_offset;
  return out;
}

bool has_negative_stride(const Layout& t) {
  return std::any_of(t.strides.begin(), t.strides.end(), [](std::int64_t s) { return s < 0; });
}

bool is_misaligned(const Layout& t) {
  const auto alignment = static_cast<std::uintptr_t>(size_of(real_type_of(t.dtype)));
  return reinterpret_cast<std::uintptr_t>(t.data) % alignment != 0;
}

/// Returns why the memory cannot be shared; null if it can.
const char* why_copied(const Layout& t, bool read_only, const FromDlpackOptions& options) {
  if (options.device && *options.device != t.device) return "it is on another device";
  if (read_only) return "it is read-only";
  if (has_negative_stride(t)) return "it has negative strides";
  return is_misaligned(t) ? "its address is not aligned" : nullptr;
}

/// Copies elements of the host one by one; their strides may be negative and their addresses unaligned.
Tensor gather(const Layout& t) {
  Tensor out = empty(t.sizes, {.dtype = t.dtype});
  const std::int64_t width = size_of(t.dtype);
  auto* to = static_cast<std::byte*>(out.raw_data());
  Shape index = Shape::filled(t.sizes.size(), 0);
  const std::byte* from = t.data;
  for (std::int64_t i = 0; i < out.numel(); ++i, to += width) {
    std::memcpy(to, from, static_cast<std::size_t>(width));
    for (int d = t.sizes.size() - 1; d >= 0; --d) {
      from += t.strides[d] * width;
      if (++index[d] < t.sizes[d]) break;
      from -= t.strides[d] * t.sizes[d] * width;
      index[d] = 0;
    }
  }
  return out;
}

Tensor copy_of(const Layout& t) {
  if (t.sizes.numel() == 0 || t.device == kCpu) return gather(t);
  if (has_negative_stride(t) || is_misaligned(t))
    throw ValueError("[from_dlpack] memory of a GPU with negative strides or unaligned is not copied. Copy it first.");
  return from_blob(t.data, t.sizes, t.strides, {.dtype = t.dtype, .device = t.device}).clone();
}

template <class Handle>
Tensor import_tensor(Handle* handle, bool read_only, const FromDlpackOptions& options) {
  const Layout t = layout_of(handle->dl_tensor);
  const char* reason = why_copied(t, read_only, options);
  const bool is_empty = t.sizes.numel() == 0;
  if (reason && options.copy == false && !is_empty)
    throw ValueError(fmt::format("[from_dlpack] the memory cannot be shared, since {}. Allow a copy.", reason));
  const auto release = [handle] {
    if (handle->deleter) handle->deleter(handle);
  };
  if (!reason && options.copy != true && !is_empty)
    return from_blob(t.data, t.sizes, t.strides, {.dtype = t.dtype, .device = t.device}, release);
  const Tensor copy = copy_of(t).to(options.device.value_or(t.device));
  release();
  return copy;
}

}  // namespace

DLManagedTensor* to_dlpack(const Tensor& tensor) { return export_tensor<DLManagedTensor>(tensor); }

DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor, const ToDlpackOptions& options) {
  DLManagedTensorVersioned* handle =
      export_tensor<DLManagedTensorVersioned>(options.copy && !tensor.requires_grad() ? tensor.clone() : tensor);
  handle->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  handle->flags = (options.read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0) |
                  (options.copy ? DLPACK_FLAG_BITMASK_IS_COPIED : 0);
  return handle;
}

Tensor from_dlpack(DLManagedTensor* handle, const FromDlpackOptions& options) {
  if (!handle) throw ValueError("[from_dlpack] the handle is a null pointer.");
  return import_tensor(handle, false, options);
}

Tensor from_dlpack(DLManagedTensorVersioned* handle, const FromDlpackOptions& options) {
  if (!handle) throw ValueError("[from_dlpack] the handle is a null pointer.");
  if (handle->version.major != 1) {
    throw ValueError(fmt::format("[from_dlpack] the handle has version {}.{} of DLPack; versions 1.x are read.",
                                 handle->version.major, handle->version.minor));
  }
  return import_tensor(handle, (handle->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0, options);
}

}  // namespace levin::interop
