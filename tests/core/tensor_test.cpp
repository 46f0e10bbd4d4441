#include <doctest/doctest.h>
#include <levin/kernels/cuda.h>
#include <levin/core/tensor.h>

#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

using namespace levin;

TEST_CASE("empty tensors have row-major geometry") {
  const Tensor t = empty({2, 3, 4}, {.dtype = kInt16});
  CHECK(t.sizes() == Shape{2, 3, 4});
  CHECK(t.strides() == Shape{12, 4, 1});
  CHECK(t.dim() == 3);
  CHECK(t.size(-1) == 4);
  CHECK(t.numel() == 24);
  CHECK(t.dtype() == kInt16);
  CHECK(t.is_contiguous());
  CHECK(t.storage()->bytes() == 48);
  CHECK(empty({}).numel() == 1);
  CHECK(empty({3, 0}).numel() == 0);
  CHECK(empty({0}).raw_data() != nullptr);
  CHECK(empty({2}).dtype() == default_dtype());
  CHECK_THROWS_WITH_AS(empty({2, -1}), "[empty] sizes are 0 or more, not (2, -1).", ShapeError);
  CHECK_THROWS_AS(t.size(3), IndexError);
}

TEST_CASE("handles are shared") {
  const Tensor a = from_data<float>({1, 2}, {2});
  const Tensor b = a;
  b.data<float>()[0] = 9;
  CHECK(a.is_same(b));
  CHECK(a.data<float>()[0] == 9);
  const Tensor undefined;
  CHECK_FALSE(undefined.defined());
  CHECK_THROWS_WITH_AS(undefined.numel(), "[tensor] this tensor is undefined: give it a value before it is used. "
                       "grad() is undefined until backward() has run.",
                       ValueError);
}

TEST_CASE_TEMPLATE("values convert on reads and writes", T, double, float, Half, BFloat16, std::int64_t, std::int32_t,
                   std::int16_t, std::int8_t, std::uint8_t) {
  const Tensor t = from_data<T>({T(0), T(1), T(2), T(100)}, {2, 2});
  CHECK(t.dtype() == dtype_of<T>);
  CHECK(t.to_vector<double>() == std::vector<double>{0, 1, 2, 100});
  CHECK(t.to_vector<bool>() == std::vector<bool>{false, true, true, true});
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    const Tensor other = from_data<T>({T(0), T(1), T(100)}, {3}, {.dtype = dtype});
    CHECK(other.dtype() == dtype);
    const double last = dtype == kBool ? 1 : 100;
    CHECK(other.to_vector<double>() == std::vector<double>{0, 1, last});
  }
}

TEST_CASE("from_data checks the count") {
  CHECK_THROWS_WITH_AS(from_data<float>({1, 2, 3}, {2, 2}),
                       "[from_data] 3 values do not fill shape (2, 2), which has 4 elements.", ShapeError);
  CHECK(from_data(std::vector<int64_t>{}, {0, 4}).numel() == 0);
}

TEST_CASE("numbers become 0-dim tensors of their category") {
  CHECK(tensor(3).dtype() == kInt64);
  CHECK(tensor(2.5).dtype() == kFloat32);
  CHECK(tensor(true).dtype() == kBool);
  CHECK(tensor(2.5, {.dtype = kInt32}).item<int>() == 2);
  CHECK(tensor(2.5).dim() == 0);
}

TEST_CASE("lists of numbers become tensors of their category") {
  CHECK(tensor({1.5, 2.5}).sizes() == Shape{2});
  CHECK(tensor({1.5, 2.5}).dtype() == kFloat32);
  CHECK(tensor({1.0F}).dtype() == kFloat32);
  CHECK(tensor({1, 2}).dtype() == kInt64);
  CHECK(tensor({true, false}).dtype() == kBool);
  CHECK(tensor({true, false}).to_vector<bool>() == std::vector<bool>{true, false});
  const Tensor mixed = tensor({1, 2.5, true});
  CHECK(mixed.dtype() == kFloat32);
  CHECK(mixed.to_vector<double>() == std::vector<double>{1, 2.5, 1});
  CHECK(tensor({true, 3}).to_vector<int64_t>() == std::vector<int64_t>{1, 3});
  CHECK(tensor({}).dtype() == kFloat32);
  CHECK(tensor({}).sizes() == Shape{0});
  constexpr auto big = std::numeric_limits<int64_t>::max();
  CHECK(tensor({big, 1}).to_vector<int64_t>()[0] == big);
  CHECK(tensor({1, 2}, kFloat64).dtype() == kFloat64);
  CHECK(tensor({1, 2}, {.dtype = kInt8}).dtype() == kInt8);
  CHECK(tensor({1.0}, {.requires_grad = true}).requires_grad());
  set_default_dtype(kFloat64);
  CHECK(tensor({1.5F}).dtype() == kFloat64);
  set_default_dtype(kFloat32);
}

TEST_CASE("nested lists give dimensions") {
  const Tensor table = tensor({{1, 2, 3}, {4, 5, 6}});
  CHECK(table.sizes() == Shape{2, 3});
  CHECK(table.dtype() == kInt64);
  CHECK(table.to_vector<int>() == std::vector<int>{1, 2, 3, 4, 5, 6});
  const Tensor column = tensor({{0.0}, {1.0}, {2.0}});
  CHECK(column.sizes() == Shape{3, 1});
  CHECK(column.dtype() == kFloat32);
  CHECK(tensor({{1.5, 2}}).sizes() == Shape{1, 2});
  CHECK(tensor({{{1}, {2}}, {{3}, {4}}}).sizes() == Shape{2, 2, 1});
  CHECK(tensor({{true}, {false}}).dtype() == kBool);
  CHECK(tensor({{}, {}}).sizes() == Shape{2, 0});
  CHECK_THROWS_WITH_AS(tensor({{1, 2}, {3}}),
                       "[tensor] a list has 1 entries where the first one of its depth has 2; give all lists of one "
                       "depth the same length.", ShapeError);
  CHECK_THROWS_WITH_AS(tensor({{1}, 2}), doctest::Contains("[tensor] a list holds numbers beside lists"), ShapeError);
  CHECK_THROWS_WITH_AS(tensor({1, {2}}), doctest::Contains("[tensor] a list holds numbers beside lists"), ShapeError);
}

TEST_CASE("typed values keep their type") {
  CHECK(tensor(std::vector<double>{1, 2}).dtype() == kFloat64);
  CHECK(tensor(std::vector<int>{1, 2}).dtype() == kInt32);
  CHECK(tensor<double>({1, 2}).dtype() == kFloat64);
  CHECK(tensor<Half>({Half(1.0F)}).dtype() == kFloat16);
  CHECK(from_data<double>({1, 2}, {2}).dtype() == kFloat64);
}

TEST_CASE("item reads one element") {
  CHECK(from_data<float>({2.5f}, {1, 1}).item<double>() == 2.5);
  constexpr auto big = std::numeric_limits<int64_t>::max();
  CHECK(tensor(big).item<int64_t>() == big);  // not converted through a double
  CHECK(from_data<std::int64_t>({big}, {1}).to_vector<int64_t>()[0] == big);
  CHECK_THROWS_WITH_AS(from_data<float>({1, 2}, {2}).item<float>(),
                       "[item] a tensor of shape (2,) has 2 elements, not 1. Reduce it or index it first.", ShapeError);
}

TEST_CASE("aliases share memory and read with their own strides") {
  const Tensor t = from_data<float>({0, 1, 2, 3, 4, 5}, {2, 3});
  const Tensor transposed = alias(t, {3, 2}, {1, 3}, 0);
  CHECK(transposed.shares_storage(t));
  CHECK_FALSE(transposed.is_contiguous());
  CHECK(transposed.to_vector<int>() == std::vector<int>{0, 3, 1, 4, 2, 5});
  const Tensor column = alias(t, {2}, {3}, 1);
  CHECK(column.to_vector<float>() == std::vector<float>{1, 4});
  CHECK(column.tensor_view().pointer == t.data<float>() + 1);
  CHECK(alias(t, {2, 2}, {0, 1}, 4).to_vector<float>() == std::vector<float>{4, 5, 4, 5});
  CHECK(alias(t, {1}, {1}, 5).item<float>() == 5);
  t.storage()->bump_version();
  CHECK(transposed.version() == t.version());
}

TEST_CASE("data is typed") {
  const Tensor t = from_data<float>({1}, {1});
  CHECK_THROWS_WITH_AS(t.data<double>(),
                       "[data] the tensor holds float32, but float64 was asked for. Convert it with x.to(...).",
                       DTypeError);
}

TEST_CASE("from_blob borrows") {
  std::vector<double> memory{1, 2, 3, 4};
  const Tensor t = from_blob(memory.data(), {2}, {2}, {.dtype = kDouble});
  CHECK(t.to_vector<double>() == std::vector<double>{1, 3});
  memory[2] = 7;
  CHECK(t.to_vector<double>() == std::vector<double>{1, 7});
  CHECK(t.storage()->bytes() == 24);
  CHECK_THROWS_AS(from_blob(memory.data(), {2, 2}, {1}, {.dtype = kDouble}), ShapeError);
  CHECK_THROWS_AS(from_blob(memory.data(), {2}, {-1}, {.dtype = kDouble}), ShapeError);
  CHECK_THROWS_AS(from_blob(nullptr, {2}, {}), ValueError);
}

TEST_CASE("devices") {
  CHECK(to_string(kCpu) == "cpu");
  CHECK(to_string(cuda(1)) == "cuda:1");
  CHECK(parse_device("cpu") == kCpu);
  CHECK(parse_device("cuda") == cuda(0));
  CHECK(parse_device("gpu") == cuda(0));
  CHECK(parse_device("gpu:2") == cuda(2));
  CHECK(parse_device("cuda:3") == cuda(3));
  for (const char* bad : {"", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:1000"}) {
    CHECK_THROWS_AS(parse_device(bad), DeviceError);
  }
  CHECK(device_backend(kCpu).device_count() == 1);
  CHECK_THROWS_WITH_AS(require_device({DeviceType::cpu, 1}),
                       "[device] cpu:1 does not exist: this machine has 1 cpu device, counted from 0.", DeviceError);
  if (std::string_view(cuda::flavour()) == "OFF") {
    CHECK_THROWS_WITH_AS(empty({2}, {.device = cuda(0)}),
                         "[device] cuda is not in this build: it has cpu. Use one of these, or a build with "
                         "-DLEVIN_CUDA=ON.",
                         DeviceError);
  }
}

namespace {

/// A device whose memory is the host's at shifted addresses, so that a direct read gets wrong values.
class ShiftedDevice final : public DeviceBackend {
 public:
  static constexpr std::ptrdiff_t kShift = 1 << 20;
  std::string name() const override { return "custom0"; }
  int device_count() const override { return 1; }
  void* allocate(std::size_t bytes, Stream&) override {
    ++live;
    return static_cast<std::byte*>(::operator new(bytes + kShift)) + kShift;
  }
  void free(void* p, std::size_t, int) noexcept override {
    --live;
    ::operator delete(static_cast<std::byte*>(p) - kShift);
  }
  void copy(void* to, Device, const void* from, Device, std::size_t bytes, Stream&) override {
    ++copies;
    std::memcpy(to, from, bytes);
  }
  void fill_bytes(void* p, int value, std::size_t bytes, Stream&) override { std::memset(p, value, bytes); }
  Stream current_stream(int) override { return Stream({DeviceType::custom0, 0}); }
  void synchronize(int) override {}
  MemoryStats memory_stats(int) const override { return {}; }
  void empty_cache(int) override {}
  std::string properties(int) const override { return "for tests"; }
  int live = 0, copies = 0;
};

}  // namespace

TEST_CASE("a custom device") {
  static ShiftedDevice backend;
  register_device(DeviceType::custom0, backend);
  constexpr Device there{DeviceType::custom0, 0};
  {
    const Tensor t = from_data<float>({1, 2, 3, 4}, {2, 2}, {.device = there});
    CHECK(backend.live == 1);
    CHECK(t.device() == there);
    CHECK(alias(t, {2}, {2}, 1).to_vector<float>() == std::vector<float>{2, 4});
    CHECK(alias(t, {}, {}, 3).item<float>() == 4);
    CHECK(to_string(t) == "tensor([[1., 2.],\n        [3., 4.]], device='custom0:0')");
    CHECK_THROWS_AS(t.data<float>(), DeviceError);
    CHECK(backend.copies == 4);
  }
  CHECK(backend.live == 0);
  CHECK_THROWS_AS(register_device(DeviceType::cpu, backend), DeviceError);
}
