// The networks of the example programs are exported, imported, and give the eager results at another batch size. Their
// main.cpp are included here, each in a namespace of its own. With LEVIN_ONNX_FILES=folder the files, inputs and
// results are written there, for ONNX's own checker and onnxruntime.
#include <levin/interop/onnx.h>
#include <levin/interop/safetensors.h>
#include <levin/levin.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <set>

#include "examples/detect/scenes.h"
#include "examples/first_steps.h"
#include "examples/gan/nets.h"
#include "examples/mnist/nets.h"
#include "examples/speech/voices.h"
#include "support/comparison.h"
#include "support/tolerance.h"

#define main example_main
namespace gpt_example {
#include "examples/gpt/main.cpp"
}
namespace translate_example {
#include "examples/translate/main.cpp"
}
namespace vae_example {
#include "examples/vae/main.cpp"
}
namespace recommender_example {
#include "examples/recommender/main.cpp"
}
namespace graph_example {
#include "examples/graph/main.cpp"
}
namespace resnet_example {
#include "examples/resnet/main.cpp"
}
namespace vit_example {
#include "examples/vit/main.cpp"
}
namespace ddpm_example {
#include "examples/ddpm/main.cpp"
}
namespace detect_example {
#include "examples/detect/main.cpp"
}
namespace speech_example {
#include "examples/speech/main.cpp"
}
namespace dqn_example {
#include "examples/dqn/main.cpp"
}
namespace lstm_example {
#include "examples/lstm/main.cpp"
}
#undef main

using namespace levin;

namespace {

using Tensors = std::vector<Tensor>;
using Inputs = std::function<Tensors(int64_t batch)>;

/// Exports forward, and compares the imported network with it at a batch of 5.
void check(const char* name, nn::Module& module, const interop::OnnxForward& forward, const Inputs& inputs,
           const interop::OnnxExportOptions& options = {}, double ulps = 64) {
  CAPTURE(name);
  const io::Bytes bytes = interop::encode_onnx(module, forward, inputs(2), options);
  interop::OnnxModel imported(bytes, name);
  module.eval();
  const no_grad guard;
  const Tensors x = inputs(options.dynamic_batch ? 5 : 2), expected = forward(x), actual = imported(x);
  REQUIRE(actual.size() == expected.size());
  StateDict tensors;
  for (std::size_t i = 0; i < x.size(); ++i) tensors.merge("", {{"input." + std::to_string(i), x[i]}});
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double largest = test::largest_difference(expected[i], zeros(expected[i].sizes()));
    REQUIRE(std::isfinite(largest));
    CHECK(test::compare(actual[i], expected[i], {.ulps = ulps, .scale = largest * ulps / 4}) == "");
    tensors.merge("", {{"output." + std::to_string(i), expected[i]}});
  }
  if (const char* folder = std::getenv("LEVIN_ONNX_FILES")) {
    io::write_file(std::filesystem::path(folder) / (std::string(name) + ".onnx"), bytes);
    interop::save_safetensors(std::filesystem::path(folder) / (std::string(name) + ".safetensors"), tensors);
  }
}

void check(const char* name, nn::Module& module, const Inputs& inputs) {
  check(
      name, module, [&](const Tensors& x) { return module.call(x); }, inputs);
}

Tensors images(int64_t batch) { return {randn({batch, 1, 28, 28})}; }

}  // namespace

TEST_CASE("the networks of mnist, gan and dqn are exported") {
  manual_seed(1);
  for (const std::string name : {"mlp", "cnn", "lenet", "fast"}) {
    nn::Sequential net = make_net(name);
    check(("mnist_" + name).c_str(), net, images);
  }
  for (const bool tiny : {true, false}) {
    nn::Sequential generator = make_generator(tiny, kClasses), discriminator = make_discriminator(tiny, kClasses);
    check(tiny ? "gan_generator_tiny" : "gan_generator", generator, [](int64_t b) -> Tensors {
      return {randn({b, kNoise + kClasses, 1, 1})};
    });
    check(tiny ? "gan_discriminator_tiny" : "gan_discriminator", discriminator, images);
  }
  nn::Sequential q = dqn_example::network(16);
  check("dqn", q, [](int64_t b) -> Tensors { return {randn({b, 4})}; });
}

TEST_CASE("the networks of resnet, vit, ddpm and detect are exported") {
  manual_seed(2);
  resnet_example::ResNet resnet({});
  check("resnet", resnet, images);
  vit_example::Vit vit({.patch = 7, .width = 16, .heads = 2, .layers = 2});
  check("vit", vit, images);
  ddpm_example::UNet unet(8);
  check("ddpm", unet, [](int64_t b) -> Tensors {
    return {randn({b, 1, 28, 28}), randint(0, 10, {b}), randint(0, 1000, {b})};
  });
  detect_example::Options options;
  options.width = 4;
  detect_example::Detector detector(options);
  const auto found = [&](const Tensors& x) -> Tensors {
    const auto [offsets, logits] = detector.outputs(x[0]);
    return {detector.decode(offsets), softmax(logits, -1)};
  };
  check("detect", detector, found, [](int64_t b) -> Tensors { return {randn({b, 1, 64, 64})}; });
}

TEST_CASE("the networks of gpt, translate, lstm and speech are exported") {
  manual_seed(3);
  gpt_example::Options of_gpt;
  of_gpt.width = 16, of_gpt.layers = 2, of_gpt.heads = 2, of_gpt.context = 8;
  gpt_example::Gpt gpt(of_gpt, 20, 1.0);
  check("gpt", gpt, [](int64_t b) -> Tensors { return {randint(0, 20, {b, 8})}; });

  translate_example::Options of_translate;
  of_translate.width = 16, of_translate.heads = 2, of_translate.layers = 1;
  translate_example::Translator translator(of_translate);
  // Padding at the end: words of this length at least.
  const auto words = [](int64_t b) -> Tensors {
    Tensor x = randint(3, 99, {b, 7});
    x = where(arange(7) < 4 + arange(b).unsqueeze(1) % 4, x, 0);
    return {x, randint(3, 99, {b, 5})};
  };
  check(
      "translate", translator, [&](const Tensors& x) -> Tensors { return {translator.logits(x[0], x[1])}; }, words);

  lstm_example::Options of_lstm;
  of_lstm.hidden = 8;
  lstm_example::Predictor series(of_lstm, 0), language(of_lstm, 30);
  check("lstm", series, [](int64_t b) -> Tensors { return {randn({b, 6})}; });
  check("lstm_language", language, [](int64_t b) -> Tensors { return {randint(0, 30, {b, 6})}; });

  speech_example::Options of_speech;
  of_speech.width = 8;
  speech_example::Recognizer recognizer(of_speech);
  check(
      "speech", recognizer, [&](const Tensors& x) { return recognizer.call(x); },
      [](int64_t b) -> Tensors {
        return {0.1 * randn({b, 2048})};
      },
      {}, 1024);
}

TEST_CASE("the networks of vae, recommender and graph are exported") {
  manual_seed(4);
  vae_example::Options of_vae;
  of_vae.hidden = 32;
  vae_example::Vae vae(of_vae);
  check("vae_encoder", vae.encoder, images);
  check(
      "vae_decoder", vae, [&](const Tensors& z) -> Tensors { return {vae.draw(z[0])}; },
      [&](int64_t b) -> Tensors {
        return {randn({b, of_vae.latent})};
      });

  recommender_example::Options of_recommender;
  of_recommender.items = 40;
  recommender_example::Recommender recommender(of_recommender);
  check(
      "recommender", recommender, [&](const Tensors& x) -> Tensors { return {recommender.score(x[0], x[1])}; },
      [](int64_t b) -> Tensors {
        return {randint(0, 41, {b, 9}), randint(1, 41, {b})};
      });

  graph_example::Options of_graph;
  of_graph.nodes = 60, of_graph.hidden = 8;
  const graph_example::Graph g(of_graph);
  graph_example::NodeClassifier classifier(of_graph, g);
  // The edges are one graph, whose features are the input.
  check(
      "graph", classifier,
      [&](const Tensors& x) -> Tensors {
        const auto convolve = [&](auto& conv, const Tensor& h) { return conv(h, g.from, g.to, g.weight); };
        return {convolve(classifier.conv2, relu(convolve(classifier.conv1, x[0])))};
      },
      [&](int64_t) -> Tensors { return {g.x}; }, {.dynamic_batch = false});
}
