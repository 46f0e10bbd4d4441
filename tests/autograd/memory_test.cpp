#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>
#include <levin/autograd/graph_watch.h>
#include <levin/core/allocator.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "support/small_cases.h"

using namespace levin;

TEST_CASE("no storage outlives its graph") {
  const int64_t before = Storage::live_count();
  {
    const Tensor w = randn({4, 4}).requires_grad_();
    for (int i = 0; i < 3; ++i) {
      Tensor x = randn({2, 4});
      for (int k = 0; k < 3; ++k) x = tanh(matmul(x, w));
      const Tensor e = exp(x);  // saves its own output
      sum(e * e).backward();
    }
    const Tensor y = exp(w), dropped = y * y;  // a graph that never runs backward
    y.register_hook([](const Tensor& g) { return g; });
  }
  CHECK(Storage::live_count() == before);
}

TEST_CASE("an in-place edit makes no reference cycle") {
  const int64_t before = Storage::live_count();
  {
    const Tensor w = ones({3}).requires_grad_();
    const Tensor x = ones({3});
    const Tensor y = x * w;  // saves x
    x.add_(y);               // x's history now holds the node that saved x
    const Tensor v = x(Slice(0, 2));
    v.mul_(w(Slice(0, 2)));
  }
  CHECK(Storage::live_count() == before);
}

TEST_CASE("backward releases what it no longer needs") {
  const Tensor w = ones({1000}).requires_grad_();
  Tensor y = w;
  const int64_t before = Storage::live_count();
  for (int i = 0; i < 10; ++i) y = y * w;
  const Tensor loss = sum(y);
  y = Tensor();
  CHECK(Storage::live_count() > before + 5);
  loss.backward();
  CHECK(Storage::live_count() <= before + 2);  // the loss and w's gradient
}

TEST_CASE("a chain of a million nodes runs and is freed without a deep stack") {
  const int nodes = test::small_cases() ? 100'000 : 1'000'000;  // a sanitizer's frames are larger
  const Tensor w = ones({1}).requires_grad_();
  Tensor y = w;
  for (int i = 0; i < nodes; ++i) y = y + w;
  SUBCASE("backward") {
    sum(y).backward();
    CHECK(w.grad().item<float>() == static_cast<float>(nodes + 1));
  }
  SUBCASE("dropped") { y = Tensor(); }
  CHECK(w.requires_grad());
}

TEST_CASE("a training step in steady state allocates no memory from the system") {
  const Tensor w = randn({64, 64}).requires_grad_(), x = randn({32, 64});
  const auto step = [&] {
    sum(square(relu(matmul(x, w)))).backward();
    no_grad guard;
    w.sub_(w.grad() * 1e-3f);
    w.set_grad({});
  };
  for (int i = 0; i < 5; ++i) step();
  const auto before = cpu_allocator::stats().system_allocations;
  for (int i = 0; i < 20; ++i) step();
  CHECK(cpu_allocator::stats().system_allocations == before);
}

TEST_CASE("autograd/graph_node_count_returns_to_zero") {
  const Tensor w = randn({4, 4}).requires_grad_(), x = randn({2, 4});
  const auto loss_of_step = [&] { return sum(square(tanh(matmul(x, w)))); };
  const Tensor before = loss_of_step(), fresh = ones({}).requires_grad_();
  const GraphWatch watch;
  CHECK(watch.live() == 0);  // nodes recorded before are not counted
  {
    const Tensor loss = loss_of_step() * fresh;
    CHECK(watch.live() == 5);
    loss.backward();
    CHECK(watch.live() == 5);  // the values are freed, the nodes live as long as the loss
  }
  CHECK(fresh.grad().defined());
  CHECK(watch.live() == 0);
  CHECK(watch.oldest().empty());

  // A list of losses keeps the history of every step; it should hold only their values.
  std::vector<Tensor> losses;
  for (int i = 0; i < 3; ++i) losses.push_back(loss_of_step());
  const std::int64_t three = watch.live();
  CHECK(three == 12);
  const std::string oldest = watch.oldest();
  CHECK_MESSAGE(oldest.find("recorded " + std::to_string(three) + " operations ago") != std::string::npos, oldest);
  {
    const GraphWatch inner;
    losses.erase(losses.begin(), losses.begin() + 2);
    CHECK(inner.live() == 0);
  }
  CHECK(watch.live() < three);
  for (Tensor& loss : losses) loss = loss.detach();
  CHECK(watch.live() == 0);
}

TEST_CASE("graph_memory counts the bytes that backward frees, by operation") {
  const Tensor w = randn({64, 64}).requires_grad_(), bias = randn({64}).requires_grad_();
  Tensor loss;
  {
    Tensor x = randn({32, 64});
    for (int i = 0; i < 3; ++i) x = gelu(tanh(linear(x, w, bias)));
    loss = (exp(x) * sigmoid(x)).mean();
  }
  const GraphMemory memory = graph_memory(loss);
  int64_t sum = 0;
  for (const OperationMemory& row : memory.rows) {
    CHECK(row.bytes > 0);
    CHECK(graph_text(loss).find(std::to_string(row.number) + " " + row.name) != std::string::npos);
    sum += row.bytes;
  }
  CHECK(sum == memory.bytes);
  CHECK(memory.rows.size() > 6);
  CHECK(std::ranges::is_sorted(memory.rows, std::greater(), &OperationMemory::bytes));
  CHECK_MESSAGE(memory.text().find("gelu") != std::string::npos, memory.text());
  const auto allocated = [] { return static_cast<int64_t>(cpu_allocator::stats().allocated); };
  const int64_t before = allocated(), gradients = static_cast<int64_t>(sizeof(float)) * (64 * 64 + 64);
  loss.backward();
  const int64_t freed = before + gradients - allocated();
  CHECK(std::abs(freed - memory.bytes) <= 64 * static_cast<int64_t>(memory.rows.size() + 2));  // rounded to lines
  CHECK(graph_memory(loss).bytes == 0);
}

TEST_CASE("graph_memory counts memory that several operations saved once, and leaves not at all") {
  const Tensor w = ones({100}).requires_grad_();
  const Tensor x = w * 2.0;  // saves nothing
  const Tensor y = x * x + sin(x) + w * x;
  CHECK(graph_memory(y.sum()).bytes == static_cast<int64_t>(x.impl()->storage->bytes()));
}
