// A kernel table lists the types that a device's kernel takes.

#include <levin/kernels/attention.h>
#include <levin/kernels/conv.h>
#include <levin/kernels/matmul.h>
#include <levin/kernels/norm.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

using namespace levin;

TEST_CASE("types are sets") {
  constexpr kernels::DTypes two{DType::f16, DType::i64};
  static_assert(two.has(DType::f16) && two.has(DType::i64) && !two.has(DType::f32) && !two.has(DType::bf16));
  static_assert(!two.without({DType::i64}).has(DType::i64) && two.without({DType::i64}).has(DType::f16));
  CHECK(kernels::DTypes::every().has(DType::boolean));
}

TEST_CASE("cpu kernels that take only float32 and float64 are listed so; those of cuda take every type") {
  for (const DType t : {DType::f16, DType::bf16}) {
    CHECK_FALSE(kernels::conv2d.takes(DeviceType::cpu, t));
    CHECK(kernels::conv2d.takes(DeviceType::cuda, t));
    CHECK_FALSE(kernels::attention_backward.takes(DeviceType::cpu, t));
    CHECK(kernels::attention_backward.takes(DeviceType::cuda, t));
    CHECK(kernels::matmul.takes(DeviceType::cpu, t));
  }
  CHECK(kernels::batch_norm.takes(DeviceType::cpu, DType::f32));
}

TEST_CASE("a kernel registered at run time takes the types of the cpu's, unless it specifies others") {
  struct Args {};
  const auto nothing = [](const Args&, Stream&) {};
  kernels::Kernel<void(const Args&, Stream&)> table{"table", nothing, nullptr, kernels::kNot16BitFloats};
  table.set(DeviceType::custom0, nothing);
  CHECK_FALSE(table.takes(DeviceType::custom0, DType::f16));
  table.set(DeviceType::custom1, nothing, {DType::f16});
  CHECK(table.takes(DeviceType::custom1, DType::f16));
  CHECK_FALSE(table.takes(DeviceType::custom1, DType::f32));
}

TEST_CASE("an observer is called before and after each kernel with its arguments") {
  struct Args {
    int value = 0;
  };
  struct Observer : kernels::KernelObserver {
    void called(const char* kernel, Device) override { calls.push_back(std::string("called ") + kernel); }
    void returned(const char* kernel, const std::type_info& type, const void* args, const kernels::Work& work,
                  const Stream&) override {
      REQUIRE(type == typeid(Args));
      CHECK(work.bytes == 0);  // the arguments do not say it
      calls.push_back(fmt::format("returned {} {}", kernel, static_cast<const Args*>(args)->value));
    }
    std::vector<std::string> calls;
  } observer;
  const kernels::Kernel<void(const Args&, Stream&)> table{"table", [](const Args&, Stream&) {}};
  Stream stream(kCpu);
  kernels::KernelObserver* const former = kernels::set_observer(&observer);
  table({.value = 7}, stream);
  kernels::set_observer(former);
  table({.value = 8}, stream);
  CHECK(observer.calls == std::vector<std::string>{"called table", "returned table 7"});
}
