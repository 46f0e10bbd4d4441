#include <doctest/doctest.h>
#include <levin/trainer/train_state.h>

#include <thread>
#include <vector>

using namespace levin;

TEST_CASE("a stop token keeps the first reason until it is cleared") {
  StopToken token;
  CHECK(!token.requested());
  CHECK(token.reason().empty());
  token.request("first");
  token.request("second");
  CHECK(token.requested());
  CHECK(token.reason() == "first");
  token.clear();
  CHECK(!token.requested());
  CHECK(token.reason().empty());
  token.request("third");
  CHECK(token.reason() == "third");
}

TEST_CASE("threads may ask one stop token at the same time, and one reason is kept whole") {
  StopToken token;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 100; ++k) token.request(std::string(100, static_cast<char>('a' + i)));
    });
  for (std::thread& t : threads) t.join();
  const std::string reason = token.reason();
  REQUIRE(reason.size() == 100);
  CHECK(reason == std::string(100, reason[0]));
}
