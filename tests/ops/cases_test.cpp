// Runs every operation case in every mode.

#include "cases/cases.h"
#include "support/shard.h"

#include <doctest/doctest.h>

#include <levin/core/config.h>

#include <cstdlib>
#include <set>

using namespace levin;
using namespace levin::test;

namespace {

/// Returns all cases, or those whose names contain LEVIN_CASE, or this process's shard.
const std::vector<OpCase>& cases() {
  static const std::vector<OpCase> list = [] {
    std::vector<OpCase> kept;
    const char* filter = std::getenv("LEVIN_CASE");
    std::size_t number = 0;
    for (OpCase& c : all_cases())
      if (in_shard(number++) && (!filter || c.name.find(filter) != std::string::npos)) kept.push_back(std::move(c));
    return kept;
  }();
  return list;
}

void run(std::string (*mode)(const OpCase&)) {
  for (const OpCase& c : cases()) {
    const std::string wrong = mode(c);
    CHECK_MESSAGE(wrong.empty(), wrong);
  }
}

}  // namespace

TEST_CASE("names are unique and every case has samples and types") {
  std::set<std::string> names;
  for (const OpCase& c : cases()) {
    CHECK_MESSAGE(names.insert(c.name).second, c.name);
    CHECK_MESSAGE((!c.samples.empty() && !c.dtypes.empty()), c.name);
    CHECK_MESSAGE((c.reference || !c.torch.empty() || c.samples[0].reference), c.name);
  }
}

TEST_CASE("operations match their references in every type and layout") { run(check_forward); }
TEST_CASE("gradients match finite differences") { run(check_gradients); }
TEST_CASE("gradients of large samples match slopes of the reference and those in f64") { run(check_large_gradients); }
TEST_CASE("gradients do not depend on the incoming gradient's layout") { run(check_incoming_layouts); }
TEST_CASE("second gradients match finite differences") { run(check_second_gradients); }
TEST_CASE("results have the same bits with 1, 2, 3 and 7 threads") { run(check_thread_counts); }
TEST_CASE("invalid arguments are refused with the reason") { run(check_errors); }

#if defined(LEVIN_TEST_CUDA)
TEST_CASE("operations on cuda equal their references in every type and layout, and so do gradients") {
  for (const OpCase& c : cases()) {
    const std::string wrong = check_device(c, cuda(0));
    CHECK_MESSAGE(wrong.empty(), wrong);
  }
}
#endif
