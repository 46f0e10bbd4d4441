// Runs the example with an encoder on one device and a decoder on another as a user does.
#include <doctest/doctest.h>

#include "examples/model_parallel/autoencoder.h"
#include "examples/program.h"
#include "support/comparison.h"

using namespace levin;
using levin::test::approx;
using levin::test::Ended;
using levin::test::TempDir;

TEST_CASE("examples/model_parallel: training works, and splitting a half over several devices changes nothing") {
  const TempDir dir;
  const auto program = [&](const std::string& arguments) {
    return test::run_program(dir, "model_parallel", "--steps 60 --threads 2 " + arguments);
  };
  const Ended one = program("");
  REQUIRE_MESSAGE(one.status == 0, one.err);
  CHECK(one.number("test_error") < 0.3 * one.number("before"));
  const Ended several = program("--encoder cpu,cpu --decoder cpu,cpu,cpu");
  REQUIRE_MESSAGE(several.status == 0, several.err);
  CHECK(several.number("test_error") == approx(one.number("test_error"), {.relative = 0.01}));
  CHECK(several.result("encoder") == "cpu,cpu");
}

TEST_CASE("model_parallel: gradients of the halves match one device") {
  manual_seed(1);
  Autoencoder net;
  const Tensor x = rand({6, 1, 28, 28});
  const auto gradients = [&](const Autoencoder::Devices& of_encoder, const Autoencoder::Devices& of_decoder) {
    net.place(of_encoder, of_decoder);
    net.zero_grad();
    square(net(x) - x).sum().backward();
    return cat({net.encoder.parameters()[0].grad().flatten(), net.decoder.parameters()[0].grad().flatten()});
  };
  const Tensor expected = gradients({kCpu}, {kCpu}), got = gradients({kCpu, kCpu}, {kCpu, kCpu, kCpu});
  CHECK(amax(abs(expected - got)).item<double>() <= 1e-5 * amax(abs(expected)).item<double>());
}

TEST_CASE("model_parallel: misuse ends with a one-line error") {
  const TempDir dir;
  for (const char* arguments :
       {"--encoder moon", "--encoder cpu,", "--decoder cpu:7", "--lr 0", "--steps 0", "--where x"}) {
    INFO(arguments);
    const Ended e = test::run_program(dir, "model_parallel", arguments);
    CHECK(e.status == 2);
    CHECK(e.err.starts_with("error: "));
    CHECK(std::count(e.err.begin(), e.err.end(), '\n') == 1);
  }
}
