// DLPack: Levin's tensors seen through handles, and the handles of other libraries as tensors.
#include <levin/autograd/ops.h>
#include <levin/interop/dlpack.h>
#include <levin/interop/dlpack_abi.h>

#include <doctest/doctest.h>

#include <complex>
#include <cstring>
#include <numeric>

#include "dlpack_layout.h"
#include "support/sentences.h"

using namespace levin;
using namespace levin::test;
using interop::from_dlpack;
using interop::to_dlpack;
using interop::to_dlpack_versioned;

extern std::vector<std::size_t> layout_of_debian();
extern std::size_t versioned_size_beside_debian();

namespace {

/// A handle as another library makes it, which counts the calls of its deleter.
template <class Handle>
struct Foreign {
  explicit Foreign(std::vector<std::int64_t> sizes, std::vector<std::int64_t> steps = {})
      : shape(std::move(sizes)), strides(std::move(steps)), values(64) {
    std::iota(values.begin(), values.end(), 0.f);
    handle.dl_tensor = {values.data(), {kDLCPU, 0}, static_cast<std::int32_t>(shape.size()), {kDLFloat, 32, 1},
                        shape.data(), strides.empty() ? nullptr : strides.data(), 0};
    handle.manager_ctx = this;
    handle.deleter = [](Handle* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
    if constexpr (requires { handle.version; }) handle.version = {1, 7};
  }
  std::vector<std::int64_t> shape, strides;
  std::vector<float> values;
  Handle handle{};
  int deleted = 0;
};
using Plain = Foreign<DLManagedTensor>;
using Versioned = Foreign<DLManagedTensorVersioned>;

std::vector<std::int64_t> as_vector(const std::int64_t* p, int n) { return {p, p + n}; }

}  // namespace

TEST_CASE("the structures have DLPack's layout") {
  const std::vector<std::size_t> ours = dlpack_layout();
  REQUIRE(ours.size() == 36);
  CHECK(ours == layout_of_debian());
  // DLPack 1.0: version, manager_ctx, deleter, flags, dl_tensor.
  CHECK(offsetof(DLManagedTensorVersioned, version) == 0);
  CHECK(offsetof(DLManagedTensorVersioned, manager_ctx) == 8);
  CHECK(offsetof(DLManagedTensorVersioned, deleter) == 16);
  CHECK(offsetof(DLManagedTensorVersioned, flags) == 24);
  CHECK(offsetof(DLManagedTensorVersioned, dl_tensor) == 32);
  CHECK(sizeof(DLManagedTensorVersioned) == 80);
  CHECK(versioned_size_beside_debian() == 80);
  CHECK(kDLBool == 6);
}

TEST_CASE("a handle describes a tensor's memory: type, sizes, strides, address") {
  const Tensor base = from_data<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {3, 4});
  const Tensor part = base(Slice(1, 3), Slice(1, 4)).t();
  DLManagedTensor* handle = to_dlpack(part);
  const DLTensor& t = handle->dl_tensor;
  CHECK(static_cast<float*>(t.data) + t.byte_offset / 4 == base.data<float>() + 5);
  CHECK(t.device.device_type == kDLCPU);
  CHECK(t.device.device_id == 0);
  REQUIRE(t.ndim == 2);
  CHECK(as_vector(t.shape, 2) == std::vector<std::int64_t>{3, 2});
  CHECK(as_vector(t.strides, 2) == std::vector<std::int64_t>{1, 4});
  CHECK(t.dtype.code == kDLFloat);
  CHECK(t.dtype.bits == 32);
  CHECK(t.dtype.lanes == 1);
  static_cast<float*>(t.data)[0] = -5;
  CHECK(base[1][1].item<float>() == -5.f);
  handle->deleter(handle);
  // An axis of size 1 has the stride 1, by which others recognize row-major tensors.
  handle = to_dlpack(base.view({3, 1, 4}).transpose(0, 1));
  CHECK(as_vector(handle->dl_tensor.strides, 3) == std::vector<std::int64_t>{1, 4, 1});
  handle->deleter(handle);
}

TEST_CASE("every type goes out and comes back") {
  struct Expected {
    int code, bits;
  };
  const Expected expected[kDTypeCount] = {{2, 64}, {2, 32}, {2, 16}, {4, 16}, {0, 64}, {0, 32},
                                          {0, 16}, {0, 8},  {1, 8},  {6, 8},  {5, 64}, {5, 128}};
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    INFO(name_of(dtype));
    const Tensor x = empty({2, 3}, {.dtype = dtype});
    DLManagedTensorVersioned* handle = to_dlpack_versioned(x);
    CHECK(handle->dl_tensor.dtype.code == expected[i].code);
    CHECK(handle->dl_tensor.dtype.bits == expected[i].bits);
    const Tensor back = from_dlpack(handle);
    CHECK(back.dtype() == dtype);
    CHECK(back.raw_data() == x.raw_data());
    CHECK(back.sizes() == x.sizes());
  }
}

TEST_CASE("scalars, empty tensors and expanded ones go out and come back") {
  const Tensor scalar = tensor(2.5), none = empty({0, 3}), wide = tensor(7.f).expand({2, 3});
  CHECK(from_dlpack(to_dlpack(scalar)).item<float>() == 2.5f);
  CHECK(from_dlpack(to_dlpack(scalar)).sizes() == Shape{});
  CHECK(from_dlpack(to_dlpack(none)).sizes() == Shape{0, 3});
  const Tensor back = from_dlpack(to_dlpack(wide));
  CHECK(back.strides() == Shape{0, 0});
  CHECK(back.to_vector<float>() == std::vector<float>(6, 7.f));
}

TEST_CASE("the deleter of an exported tensor frees its memory, once") {
  const auto before = Storage::live_count();
  DLManagedTensorVersioned* handle = nullptr;
  {
    const Tensor x = arange(6).to(kFloat32);
    handle = to_dlpack_versioned(x);
  }
  CHECK(Storage::live_count() == before + 1);
  CHECK(static_cast<float*>(handle->dl_tensor.data)[5] == 5.f);
  handle->deleter(handle);
  CHECK(Storage::live_count() == before);
}

TEST_CASE("flags and version of a handle") {
  const Tensor x = ones({2});
  DLManagedTensorVersioned* handle = to_dlpack_versioned(x);
  CHECK(handle->version.major == 1);
  CHECK(handle->flags == 0);
  handle->deleter(handle);
  handle = to_dlpack_versioned(x, {.read_only = true});
  CHECK(handle->flags == DLPACK_FLAG_BITMASK_READ_ONLY);
  CHECK(handle->dl_tensor.data == x.raw_data());
  handle->deleter(handle);
  handle = to_dlpack_versioned(x, {.copy = true});
  CHECK(handle->flags == DLPACK_FLAG_BITMASK_IS_COPIED);
  CHECK(handle->dl_tensor.data != x.raw_data());
  CHECK(static_cast<float*>(handle->dl_tensor.data)[1] == 1.f);
  handle->deleter(handle);
}

TEST_CASE("a tensor on foreign memory calls the deleter with its last view") {
  Plain foreign({2, 3});
  {
    Tensor view;
    {
      const Tensor x = from_dlpack(&foreign.handle);
      CHECK(x.to_vector<float>() == std::vector<float>{0, 1, 2, 3, 4, 5});
      CHECK(x.is_contiguous());
      view = x[1];
      x.add_(1);  // writes into the other library's memory
    }
    CHECK(foreign.deleted == 0);
    CHECK(view.to_vector<float>() == std::vector<float>{4, 5, 6});
  }
  CHECK(foreign.deleted == 1);
  CHECK(foreign.values[0] == 1.f);
  foreign.handle.deleter = nullptr;  // memory that needs no release
  CHECK(from_dlpack(&foreign.handle).numel() == 6);
  CHECK(foreign.deleted == 1);
}

TEST_CASE("foreign strides and byte offsets are read in elements and bytes") {
  Versioned foreign({2, 2}, {1, 10});
  foreign.handle.dl_tensor.byte_offset = 12;
  const Tensor x = from_dlpack(&foreign.handle);
  CHECK(x.to_vector<float>() == std::vector<float>{3, 13, 4, 14});
  CHECK(x.strides() == Shape{1, 10});
}

TEST_CASE("memory that cannot be shared is copied, and the deleter called at once") {
  Versioned foreign({2, 3});
  foreign.handle.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  Tensor x = from_dlpack(&foreign.handle);
  CHECK(foreign.deleted == 1);
  x.fill_(9);
  CHECK(foreign.values[0] == 0.f);

  Plain backwards({2, 3}, {3, -1});  // NumPy's x[:, ::-1]
  backwards.handle.dl_tensor.byte_offset = 8;
  CHECK(from_dlpack(&backwards.handle).to_vector<float>() == std::vector<float>{2, 1, 0, 5, 4, 3});
  CHECK(backwards.deleted == 1);

  Plain odd({3});
  auto* bytes = reinterpret_cast<std::byte*>(odd.values.data());
  std::memmove(bytes + 1, bytes, 12);
  odd.handle.dl_tensor.byte_offset = 1;
  CHECK(from_dlpack(&odd.handle).to_vector<float>() == std::vector<float>{0, 1, 2});
  CHECK(odd.deleted == 1);

  Plain copied({4});
  x = from_dlpack(&copied.handle, {.copy = true});
  CHECK(copied.deleted == 1);
  copied.values[1] = 50;
  CHECK(x.to_vector<float>() == std::vector<float>{0, 1, 2, 3});

  Plain nothing({0, 4});
  nothing.handle.dl_tensor.data = nullptr;
  CHECK(from_dlpack(&nothing.handle, {.copy = false}).sizes() == Shape{0, 4});
  CHECK(nothing.deleted == 1);
}

TEST_CASE("what cannot be shared is refused by name, and stays the caller's") {
  const auto refused = [](Versioned& f, const interop::FromDlpackOptions& options = {}) {
    from_dlpack(&f.handle, options);
  };
  Versioned f({2, 3}, {3, 1});
  DLTensor& t = f.handle.dl_tensor;
  const DLTensor good = t;
  const auto with = [&](auto change) {
    return [&, change] {
      t = good;
      change();
      refused(f);
    };
  };
  check_sentences({
      {"[from_dlpack] Levin has no type uint16. Convert the tensor before sharing it.",
       with([&] { t.dtype = {kDLUInt, 16, 1}; })},
      {"Levin has no type float32x4.", with([&] { t.dtype = {kDLFloat, 32, 4}; })},
      {"Levin has no type code 17 of bits 8.", with([&] { t.dtype = {17, 8, 1}; })},
      {"[from_dlpack] the memory is on kDLMetal, neither the CPU nor CUDA. Copy it there first.",
       with([&] { t.device.device_type = kDLMetal; })},
      {"the memory is on device 99, ", with([&] { t.device.device_type = static_cast<DLDeviceType>(99); })},
      {"cuda", with([&] { t.device = {kDLCUDA, 100}; })},
      {"[from_dlpack] there is no device cuda:300.", with([&] { t.device = {kDLCUDA, 300}; })},
      {"[from_dlpack] the tensor has 9 dimensions; at most 8 are read.", with([&] { t.ndim = 9; })},
      {"the tensor has -1 dimensions", with([&] { t.ndim = -1; })},
      {"[from_dlpack] the shape is a null pointer.", with([&] { t.shape = nullptr; })},
      {"[from_dlpack] the memory is a null pointer.", with([&] { t.data = nullptr; })},
  });
  t = good;
  f.shape[0] = -2;
  check_sentences({{"[from_dlpack] the shape (-2, 3) is negative or has more bytes than memory.",
                    [&] { refused(f); }}});
  f.shape[0] = std::int64_t{1} << 61;
  check_sentences({{"is negative or has more bytes than memory.", [&] { refused(f); }}});
  f.shape[0] = 2;
  f.strides[0] = INT64_MIN;
  check_sentences({{"[from_dlpack] the strides (-9223372036854775808, 1) reach beyond memory.", [&] { refused(f); }}});
  f.strides[0] = -3;
  check_sentences({{"[from_dlpack] the memory cannot be shared, since it has negative strides. Allow a copy.",
                    [&] { refused(f, {.copy = false}); }}});
  f.strides[0] = 3;
  t.byte_offset = 2;
  check_sentences({{"since its address is not aligned. Allow a copy.", [&] { refused(f, {.copy = false}); }}});
  t.byte_offset = 0;
  f.handle.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  check_sentences({{"since it is read-only. Allow a copy.", [&] { refused(f, {.copy = false}); }},
                   {"since it is on another device", [&] { refused(f, {.device = cuda(0), .copy = false}); }}});
  f.handle.version = {2, 0};
  check_sentences({
      {"[from_dlpack] the handle has version 2.0 of DLPack; versions 1.x are read.", [&] { refused(f); }},
      {"[from_dlpack] the handle is a null pointer.",
       [&] { from_dlpack(static_cast<DLManagedTensor*>(nullptr)); }},
      {"[from_dlpack] the handle is a null pointer.",
       [&] { from_dlpack(static_cast<DLManagedTensorVersioned*>(nullptr)); }},
  });
  CHECK(f.deleted == 0);
}

TEST_CASE("a tensor that requires grad is not exported, as in PyTorch") {
  const Tensor w = ones({2}).requires_grad_();
  check_sentences({
      {"[to_dlpack] the tensor requires grad, which another library would not see. Share x.detach().",
       [&] { to_dlpack(w); }},
      {"[to_dlpack] the tensor requires grad", [&] { to_dlpack_versioned(w, {.copy = true}); }},
      {"[to_dlpack] the tensor requires grad", [&] { to_dlpack(w * 2); }},
  });
  DLManagedTensor* handle = to_dlpack(w.detach());
  CHECK(handle->dl_tensor.data == w.raw_data());
  handle->deleter(handle);
}
