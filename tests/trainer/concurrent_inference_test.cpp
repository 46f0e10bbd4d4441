// One network in evaluation mode, called by several threads at once: docs/guides/threads.md promises it, and the thread
// sanitizer watches this program.
#include <levin/levin.h>

#include <doctest/doctest.h>

#include <thread>
#include <vector>

using namespace levin;

namespace {

/// Layers with buffers, state, several kernels and products.
struct Mixed : nn::Module {
  nn::Conv2d& conv = add<nn::Conv2d>("conv", 1, 4, 3);
  nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", 4);
  nn::Dropout& dropout = add<nn::Dropout>("dropout", 0.5);
  nn::LSTM& lstm = add<nn::LSTM>("lstm", 24, 8, nn::RecurrentOptions{.batch_first = true});
  nn::MultiheadAttention& attention = add<nn::MultiheadAttention>("attention", 8, 2);
  nn::Linear& head = add<nn::Linear>("head", 8, 3);

  Tensor forward(const Tensor& x) override {                                 // (B, 1, 8, 8)
    const Tensor maps = dropout(relu(norm(conv(x))));                        // (B, 4, 6, 6)
    const Tensor steps = lstm(maps.permute({0, 2, 1, 3}).flatten(2)).first;  // (B, 6, 24) -> (B, 6, 8)
    const Tensor turned = steps.transpose(0, 1);                             // (6, B, 8)
    return head(attention(turned, turned, turned).first.mean(0));            // (B, 3)
  }
};

}  // namespace

TEST_CASE("threads: several threads infer on one module and get what one thread gets") {
  manual_seed(3);
  Mixed net;
  net.eval();
  const Tensor x = randn({5, 1, 8, 8});
  Tensor expected;
  {
    inference_mode guard;
    expected = net(x);
  }
  REQUIRE(expected.abs().sum().item<double>() > 0);

  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      set_thread_serial(true);
      for (int round = 0; round < 10; ++round) {
        inference_mode guard;
        const Tensor y = round % 2 == 0 ? net(x) : net(x.slice(0, Slice(0, 3)));
        if (!equal(y, expected.slice(0, Slice(0, y.size(0))))) ++wrong[t];
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(wrong == std::vector<int>(4, 0));
}
