#include <doctest/doctest.h>
#include <levin/core/warning.h>

#include <string>
#include <vector>

using namespace levin;

TEST_CASE("warnings go to the handler, those of warn_once only once") {
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

TEST_CASE("a user's handler replaces the default handler") {
  std::vector<std::string> said, missed;
  const WarningHandler former = set_warning_handler([&](const std::string& text) { said.push_back(text); });
  set_default_warning_handler([&](const std::string& text) { missed.push_back(text); });
  warn("a");
  set_warning_handler(former);
  CHECK(said == std::vector<std::string>{"a"});
  CHECK(missed.empty());
}
