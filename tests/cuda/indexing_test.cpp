// Indexing on the device matches the CPU bit for bit for inputs that the operation cases are too small for: long rows
// with repeated indices, several chunks, many parts; and its errors.

#include "cuda/caching.h"
#include "cuda/gate.h"
#include "support/small_cases.h"

#include <levin/autograd/autograd.h>
#include <levin/kernels/cuda.h>

#include <doctest/doctest.h>

#include <functional>

using namespace levin;

namespace {

using Values = std::vector<double>;

Tensor there(const Tensor& x) { return x.to(cuda(0)); }

/// Compares f on the CPU and on the device, whose threads run in several orders.
void check_same(const char* what, const std::vector<Tensor>& inputs,
                const std::function<Tensor(const std::vector<Tensor>&)>& f) {
  std::vector<Tensor> moved;
  for (const Tensor& x : inputs) moved.push_back(there(x));
  const Values expected = f(inputs).to_vector<double>();
  for (const std::uint64_t seed : {0u, 5u}) {
#if LEVIN_TEST_EMULATED
    const std::uint64_t before = emulator::config().seed;
    emulator::config().seed = seed;
#endif
    CHECK_MESSAGE(f(moved).cpu().to_vector<double>() == expected, std::string(what) << ", seed " << seed);
#if LEVIN_TEST_EMULATED
    emulator::config().seed = before;
#endif
  }
}

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const IndexError& e) {
    return e.what();
  }
  return "no IndexError";
}

}  // namespace

TEST_CASE("cuda: sums at repeated indices match the CPU bit for bit") {
  manual_seed(41);
  for (const DType t : {DType::f32, DType::f16, DType::i32}) {
    if (test::small_cases() && t != DType::f16) continue;
    const auto random = [&](const Shape& sizes) { return mul(randn(sizes), 50).to(t); };
    // Short rows, long rows, and indices beyond one digit of the sort.
    for (const auto& [n, places] : {std::pair<int64_t, int64_t>{40, 7}, {300, 5}, {5000, 700}}) {
      const Tensor index = randint(0, places, {2, n, 3}), source = random({2, n + 1, 4}), x = random({2, places, 5});
      check_same("scatter_add", {x, index, source}, [](const auto& in) { return scatter_add(in[0], 1, in[1], in[2]); });
      check_same("scatter", {x, index, source}, [](const auto& in) { return scatter(in[0], 1, in[1], in[2]); });
      const Tensor rows = randint(0, places, {n});
      check_same("index_add", {random({2, places, 3}), rows, random({2, n, 3})},
                 [](const auto& in) { return index_add(in[0], 1, in[1], in[2]); });
    }
  }
}

TEST_CASE("cuda: gather, index_select and cat match the CPU") {
  manual_seed(42);
  for (const DType t : {DType::f64, DType::f32, DType::bf16, DType::u8, DType::boolean}) {
    const Tensor x = randint(0, 100, {3, 70, 9}).to(t);
    for (int axis = 0; axis < 3; ++axis) {
      check_same("gather", {x, randint(0, x.size(axis), {3, 9, 9})},
                 [&](const auto& in) { return gather(in[0], axis, in[1]).to(kDouble); });
      check_same("index_select", {x, randint(0, x.size(axis), {101})},
                 [&](const auto& in) { return index_select(in[0], axis, in[1]).to(kDouble); });
      check_same("cat", {x, x.narrow(1, 3, 5), x.narrow(1, 0, 0)}, [&](const auto& in) {
        std::vector<Tensor> parts;  // more parts than one launch takes
        for (int i = 0; i < 35; ++i) parts.push_back(axis == 1 ? in[i % 3 ? 1 : 2] : in[0]);
        return cat(parts, axis).to(kDouble);
      });
    }
  }
}

TEST_CASE("cuda: nonzero in several chunks") {
  manual_seed(43);
  for (const int64_t n : {16383, 16385, 40000})
    check_same("nonzero", {randint(0, 3, {n / 5, 5})}, [](const auto& in) { return nonzero(in[0]); });
  check_same("nonzero of none", {zeros({40000})}, [](const auto& in) { return nonzero(in[0]); });
}

TEST_CASE("cuda: the embedding's gradient skips the padding row") {
  manual_seed(44);
  check_same("embedding", {randn({11, 6}), randint(0, 11, {4, 50}), randn({4, 50, 6})}, [](const auto& in) {
    const Tensor weight = in[0].detach().requires_grad_();
    return grad({embedding(weight, in[1], 3)}, {weight}, {}, {in[2]})[0];
  });
}

TEST_CASE("cuda: an index out of range is refused with the CPU's message at the host's wait, without damage") {
  const Tensor x = zeros({4, 2}), index = from_data<int64_t>({0, 1, 4, -1}, {2, 2});
  const Tensor rows = from_data<int64_t>({3, 0, -2, 9}, {4}), source = zeros({4, 2});
  const std::vector<std::function<void(const std::function<Tensor(const Tensor&)>&)>> calls = {
      [&](const auto& on) { gather(on(x), 0, on(index)); },
      [&](const auto& on) { scatter(on(x), 0, on(index), on(source)); },
      [&](const auto& on) { scatter_add(on(x), 0, on(index), on(source)); },
      [&](const auto& on) { index_select(on(x), 0, on(rows)); },
      [&](const auto& on) { index_add(on(x), 0, on(rows), on(source)); },
      [&](const auto& on) { embedding(on(x), on(rows)); },
      [&](const auto& on) { one_hot(on(rows), 4); },
  };
  for (const auto& call : calls) {
    const std::string expected = message([&] { call([](const Tensor& t) { return t; }); });
    CHECK(expected.find("is out of range") != std::string::npos);
    CHECK(message([&] { call(there); }) == "no IndexError");
    CHECK(message([&] { cuda::synchronize(); }) == expected);
    CHECK(message([&] { cuda::synchronize(); }) == "no IndexError");
  }
  CHECK(there(arange(3)).cpu().to_vector<int64_t>() == std::vector<int64_t>{0, 1, 2});
}

TEST_CASE("cuda: every wait of the host reports the earliest index out of range") {
  const Tensor x = there(arange(4)), rows = there(tensor<int64_t>({3, 7, -2})), later = there(tensor<int64_t>({4}));
  const std::string expected =
      "[index_select] index 7 at position 1 is out of range: it must be 0 or more and below 4.";
  const cuda::Stream stream = cuda::current_stream();
  cuda::Event event;
  const std::vector<std::function<void(const Tensor&)>> waits = {
      [](const Tensor& y) { y.cpu(); },
      [](const Tensor& y) { y.select(0, 0).item<int64_t>(); },
      [](const Tensor&) { cuda::synchronize(); },
      [](const Tensor&) { device_backend(cuda(0)).synchronize(0); },
      [&](const Tensor&) { stream.synchronize(); },
      [&](const Tensor&) {
        event.record();
        event.synchronize();
      }};
  for (const auto& wait : waits) {
    const Tensor y = index_select(x, 0, rows);
    index_select(x, 0, later);
    CHECK(message([&] { wait(y); }) == expected);
    CHECK(y.cpu().to_vector<int64_t>() == std::vector<int64_t>{3, 0, 0});
  }
}

TEST_CASE("cuda: the first of many indices out of range in one launch is named, in any order of threads") {
  std::vector<double> values(5000, 1.0);
  for (std::size_t i = 1234; i < values.size(); ++i) values[i] = -static_cast<double>(i);
  const Tensor rows = there(from_data(values, {5000}, {.dtype = kInt64})), x = there(zeros({3, 2}));
  for ([[maybe_unused]] const std::uint64_t seed : {0u, 1u, 7u}) {
#if LEVIN_TEST_EMULATED
    const std::uint64_t before = emulator::config().seed;
    emulator::config().seed = seed;
#endif
    index_select(x, 0, rows);
    CHECK(message([] { cuda::synchronize(); }).starts_with("[index_select] index -1234 at position 1234 is"));
#if LEVIN_TEST_EMULATED
    emulator::config().seed = before;
#endif
  }
}

TEST_CASE("cuda: operations on good indices and labels wait for nothing, forward and backward" * LEVIN_HOLDS_A_STREAM) {
  manual_seed(46);
  const test::Caching cache;
  const Tensor table = there(randn({7, 5})), rows = there(randint(0, 7, {12})), labels = there(randint(0, 5, {12}));
  cuda::synchronize();
  const cuda::Stream stream = cuda::current_stream();
  test::Gate gate(static_cast<cudaStream_t>(stream.handle()));
  const Tensor weight = table.detach().requires_grad_();
  const Tensor x = embedding(weight, rows);
  add(cross_entropy(x, labels), nll_loss(log_softmax(x, 1), labels)).backward();
  const Tensor places = unsqueeze(labels, 1), hot = one_hot(labels, 5);
  const Tensor moved = scatter_add(zeros_like(x).detach(), 1, places, gather(x.detach(), 1, places));
  CHECK_FALSE(stream.query());
  gate.open();
  CHECK(message([] { cuda::synchronize(); }) == "no IndexError");
}

TEST_CASE("cuda: the index of an empty result is still checked") {
  const Tensor rows = there(tensor<int64_t>({0, 5}));
  index_select(there(zeros({4, 0})), 0, rows);
  CHECK(message([] { cuda::synchronize(); }).starts_with("[index_select] index 5 at position 1"));
}

TEST_CASE("cuda: a captured index out of range reads zero, writes nothing, and is reported after each replay") {
  const no_grad guard;
  const Tensor x = there(tensor<double>({5.0, 6.0, 7.0})), index = there(from_data<int64_t>({1, 9, -4, 2}, {4}));
  const Tensor source = there(tensor<double>({1.0, 2.0, 3.0, 4.0})), five = full({70}, 5.0, {.device = cuda(0)});
  const Tensor far = add(zeros({70}, {.dtype = kInt64, .device = cuda(0)}), 3), into = there(zeros({3}));
  cuda::synchronize(0);
  cuda::Graph graph;
  graph.capture_begin();
  const std::vector<Tensor> results = {index_select(x, 0, index),      gather(x, 0, index),
                                       scatter(x, 0, index, source),   scatter_add(x, 0, index, source),
                                       index_add(x, 0, index, source), scatter(into, 0, far, five),
                                       scatter_add(into, 0, far, five)};
  graph.capture_end();
  for (int i = 0; i < 2; ++i) {
    graph.replay();
    CHECK(message([] { cuda::synchronize(); }).starts_with("[index_select] index 9 at position 1 is out of range"));
  }
  const std::vector<Values> expected = {{6, 0, 0, 7}, {6, 0, 0, 7}, {5, 1, 4}, {5, 7, 11},
                                        {5, 7, 11},   {0, 0, 0},    {0, 0, 0}};
  for (std::size_t i = 0; i < results.size(); ++i) CHECK(results[i].cpu().to_vector<double>() == expected[i]);
}
