// Applies to every test of this program: the order of threads depends on the test's name, and unwritten memory is NaN.
#include "cuda/gate.h"
#include "support/thread_order.h"

#include <levin/kernels/cuda.h>

#include <doctest/doctest.h>

#include <optional>

namespace {

std::string suite;

struct EveryTest final : doctest::IReporter {
  explicit EveryTest(const doctest::ContextOptions&) {}

  void test_case_start(const doctest::TestCaseData& test) override {
    levin::cuda::fill_uninitialized_memory(true);
    suite = test.m_test_suite;
    order.emplace(test.m_name);
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    if (stats.failure_flags != 0 && order) MESSAGE("in this order of threads:", order->note());
    order.reset();
  }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

  std::optional<levin::test::ThreadOrder> order;
};

}  // namespace

const std::string& levin::test::current_suite() { return suite; }

REGISTER_LISTENER("every test", 1, EveryTest);
