// The stores: keys and values, waiting, and error messages.
#include <doctest/doctest.h>
#include <levin/distributed/launcher.h>
#include <levin/distributed/store.h>

#include <atomic>
#include <fstream>

#include "distributed/rendezvous/sockets.h"
#include "distributed/threads.h"
#include "support/files.h"

using namespace levin::distributed;
using namespace std::chrono_literals;
using levin::test::on_threads;
using levin::test::TempDir;

namespace {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const StoreError& e) {
    return e.what();
  }
  return "nothing was thrown";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void check_table(Store& a, Store& b) {
  a.set("colour", std::string("blue\0green", 10));
  CHECK(b.get("colour") == std::string("blue\0green", 10));
  CHECK(b.try_get("size") == std::nullopt);
  a.set("empty", "");
  CHECK(b.try_get("empty") == "");
  CHECK(a.add("count", 5) == 5);
  CHECK(b.add("count", -7) == -2);
  CHECK(a.get("count") == "-2");
  CHECK(a.compare_set("leader", "", "a") == "a");
  CHECK(b.compare_set("leader", "", "b") == "a");
  CHECK(b.compare_set("leader", "a", "b") == "b");
  CHECK(b.compare_set("nobody", "x", "y") == "");
  CHECK(b.try_get("nobody") == std::nullopt);
  CHECK(a.keys() == std::vector<std::string>{"colour", "count", "empty", "leader"});
  CHECK(b.keys("co") == std::vector<std::string>{"colour", "count"});
  CHECK(a.remove("colour"));
  CHECK_FALSE(b.remove("colour"));
  CHECK(b.try_get("colour") == std::nullopt);
  const std::string large(3 << 20, 'x');
  a.set("large", large);
  CHECK(b.get("large") == large);
}

void check_waits(Store& a, Store& b) {
  CHECK(a.wait_missing({"here", "there"}, 20ms) == std::vector<std::string>{"here", "there"});
  std::thread writer([&] {
    b.set("here", "1");
    b.set("there", "2");
  });
  CHECK_NOTHROW(a.wait({"here", "there"}, 60s));
  writer.join();
  const std::string text = error_of([&] { a.wait({"here", "elsewhere", "nowhere"}, 10ms); });
  CHECK(says(text, "2 of 3 keys were not set in " + a.address() + " within 0.01 s: elsewhere, nowhere."));
}

}  // namespace

TEST_CASE("tcp store: all clients read what one writes") {
  TcpStore server("127.0.0.1", 0, {.server = true});
  TcpStore client("127.0.0.1", server.port());
  check_table(server, client);
  check_waits(client, server);
  CHECK(client.address() == "tcp://127.0.0.1:" + std::to_string(server.port()));
  CHECK(client.local_address() == "127.0.0.1");
}

TEST_CASE("file store: all processes read what one writes, and the last one removes the file") {
  const TempDir dir;
  const auto path = dir.path / "meet here";
  {
    FileStore a(path), b(path);
    check_table(a, b);
    check_waits(a, b);
    CHECK(std::filesystem::exists(path));
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("file store: an incomplete record is truncated") {
  const TempDir dir;
  FileStore a(dir.path / "log");
  a.set("whole", "yes");
  std::ofstream(dir.path / "log", std::ios::app | std::ios::binary)
      << std::string("\5\0\0\0\xff\0\0\0br", 10) + std::string(100, '\0');
  CHECK(a.get("whole") == "yes");
  a.set("next", "too");
  CHECK(FileStore(dir.path / "log").keys() == std::vector<std::string>{"next", "whole"});
}

TEST_CASE("stores: concurrent additions are all counted, and one of concurrent claims wins") {
  const TempDir dir;
  TcpStore server("127.0.0.1", 0, {.server = true});
  std::atomic<int> winners{0};
  on_threads(4, [&](int rank) {
    TcpStore tcp("127.0.0.1", server.port());
    FileStore file(dir.path / "log");
    for (Store* store : {static_cast<Store*>(&tcp), static_cast<Store*>(&file)}) {
      for (int i = 0; i < 25; ++i) store->add("sum", rank + 1);
      if (store->compare_set("first", "", std::to_string(rank)) == std::to_string(rank)) ++winners;
      store->add("done", 1);
      while (store->get("done") != "4") std::this_thread::yield();
      CHECK(store->get("sum") == "250");
    }
  });
  CHECK(winners == 2);
}

TEST_CASE("prefix store: users with different prefixes do not interfere") {
  auto base = std::make_shared<TcpStore>("127.0.0.1", 0, TcpStoreOptions{.server = true});
  PrefixStore a("a", base), b("b", base);
  check_table(a, a);
  CHECK(b.keys().empty());
  b.set("colour", "red");
  CHECK(base->get("b/colour") == "red");
  CHECK(a.wait_missing({"colour"}, 1ms) == std::vector<std::string>{"colour"});
}

TEST_CASE("tcp store: a client may start before the server") {
  const HeldPort held;
  const int port = held.number();
  std::thread late([&] {
    TcpStore client("127.0.0.1", port, {.timeout = 60s});
    client.set("early", "bird");
  });
  std::this_thread::sleep_for(30ms);
  TcpStore server("127.0.0.1", port, {.server = true});
  CHECK(server.get("early") == "bird");
  late.join();
}

TEST_CASE("tcp store: a port in use, an unknown host, a silent port, a foreign program, a lost connection") {
  TcpStore server("127.0.0.1", 0, {.server = true});
  const std::string port = std::to_string(server.port());
  std::string text = error_of([&] { TcpStore again("127.0.0.1", server.port(), {.server = true}); });
  CHECK(says(text, "port " + port + " of this machine could not be opened: Address already in use."));
  CHECK(says(text, "MASTER_PORT"));

  text = error_of([] { TcpStore lost("no-such-host.invalid", 29500, {.timeout = 60s}); });
  CHECK(says(text, "the host \"no-such-host.invalid\" is unknown"));

  const HeldPort held;
  const int silent = held.number();
  text = error_of([&] { TcpStore alone("127.0.0.1", silent, {.timeout = 100ms}); });
  CHECK(says(text, "no answer from 127.0.0.1:" + std::to_string(silent) + " within 0.1 s: Connection refused."));

  levin::test::Stranger stranger("HTTP/1.1 400 Bad Request\r\n\r\n");
  text = error_of([&] { TcpStore wrong("127.0.0.1", stranger.port(), {.timeout = 60s}); });
  CHECK(says(text, "the program at 127.0.0.1:" + std::to_string(stranger.port()) + " is not a Levin store."));

  auto short_lived = std::make_unique<TcpStore>("127.0.0.1", 0, TcpStoreOptions{.server = true});
  TcpStore client("127.0.0.1", short_lived->port());
  short_lived.reset();
  text = error_of([&] { client.set("a", "b"); });
  CHECK(says(text, "the connection to " + client.address() + " is lost"));
  CHECK(says(error_of([&] { client.set("a", "b"); }), "is lost"));
}

TEST_CASE("tcp store: a foreign client does not disturb the server") {
  TcpStore server("127.0.0.1", 0, {.server = true});
  levin::test::say_to(server.port(), "GET / HTTP/1.1\r\n\r\n");
  levin::test::say_to(server.port(), std::string("\x06\0\0\0\x02\0\0\0hi", 10));
  levin::test::say_to(server.port(), std::string("\x04\0\0\0\xff\0\0\0", 8));
  server.set("still", "here");
  CHECK(TcpStore("127.0.0.1", server.port()).get("still") == "here");
}

TEST_CASE("file store: a folder that does not exist") {
  CHECK(says(error_of([] { FileStore store("/nonexistent/folder/file"); }),
             "[file_store] /nonexistent/folder/file could not be opened: No such file or directory."));
}
