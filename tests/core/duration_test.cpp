#include <doctest/doctest.h>
#include <levin/core/duration.h>
#include <levin/core/error.h>

#include <chrono>
#include <ratio>

using namespace levin;
using namespace std::chrono_literals;

TEST_CASE("a duration keeps std::chrono's spans to the nanosecond") {
  constexpr Duration five = 5s;
  CHECK(five == Duration(5000ms));
  CHECK(five == Duration::of_seconds(5));
  CHECK(std::chrono::nanoseconds(Duration(7ns)) == 7ns);
  CHECK(std::chrono::milliseconds(Duration(300s)) == 300'000ms);
  CHECK(std::chrono::minutes(Duration(2h)) == 120min);
  CHECK(std::chrono::nanoseconds(Duration(std::chrono::duration<double, std::milli>(0.25))) == 250us);
  CHECK(std::chrono::duration<double>(Duration(250ms)).count() == 0.25);
  CHECK(std::chrono::nanoseconds(Duration(std::chrono::duration<std::int64_t, std::pico>(3500))) == 3ns);
  CHECK(std::chrono::nanoseconds(Duration(std::chrono::duration<int, std::ratio<1, 3>>(2))) == 666'666'666ns);
  CHECK(Duration(-90s).seconds() == -90);
  CHECK(Duration(1500us).seconds() == 0.0015);
}

TEST_CASE("a duration is cut to whole units, and durations are ordered") {
  const std::chrono::seconds whole = Duration(1999ms);
  CHECK(whole == 1s);
  CHECK(Duration(1ms) < Duration(1s));
  CHECK(Duration() == Duration(0s));
  CHECK(Duration(1s) >= 1000ms);
}

TEST_CASE("a duration is read from and written as days, hours, minutes and seconds") {
  CHECK(Duration("00:12:00:00").seconds() == 12 * 3600);
  CHECK(Duration("01:02:03:04").text() == "01:02:03:04");
  CHECK(Duration(90min).text() == "00:01:30:00");
  CHECK(Duration(1999ms).text() == "00:00:00:01");
  for (const char* bad : {"", "12", "1:2:3", "00:24:00:00", "00:00:60:00", "00:00:00:60", "-1:00:00:00", "00:00:00:00x",
                          "00:00:00:", "a:b:c:d", "00:00:00:00:00"}) {
    INFO(bad);
    CHECK_THROWS_WITH_AS(Duration::parse(bad, "--max-time"), doctest::Contains("--max-time"), UsageError);
  }
}

TEST_CASE("monotonic_seconds counts seconds") {
  const auto before = std::chrono::steady_clock::now();
  const double start = monotonic_seconds();
  double end = start;
  while (end - start < 0.002) {
    const double now = monotonic_seconds();
    REQUIRE(now >= end);
    end = now;
  }
  const auto after = std::chrono::steady_clock::now();
  CHECK(std::chrono::duration<double>(after - before).count() >= end - start);
}
