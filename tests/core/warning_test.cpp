#include <doctest/doctest.h>
#include <levin/core/warning.h>

#include <string>
#include <vector>

using namespace levin;

TEST_CASE("warnings go to the handler, those of warn_once a single time") {
  std::vector<std::string> said;
  const WarningHandler former = set_warning_handler([&](const std::string& text) { said.push_back(text); });
  warn("a");
  warn("a");
  warn_once("b");
  warn_once("b");
  set_warning_handler({});
  warn("nobody hears this");
  set_warning_handler(former);
  CHECK(said == std::vector<std::string>{"a", "a", "b"});
}
