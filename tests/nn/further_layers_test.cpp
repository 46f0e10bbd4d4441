// Layers without parameters of PyTorch to compare: each against the function that it calls, or against its formula.
#include <levin/autograd/autograd.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace levin;

TEST_CASE("padding layers are pad() in their mode") {
  const Tensor line = randn({2, 3, 5}), image = randn({2, 3, 4, 5}), volume = randn({1, 2, 3, 3, 4});
  CHECK(equal(nn::ZeroPad1d(2)(line), pad(line, {2, 2})));
  CHECK(equal(nn::ZeroPad2d({1, 2, 3, 0})(image), pad(image, {1, 2, 3, 0})));
  CHECK(equal(nn::ZeroPad3d(1)(volume), pad(volume, {1, 1, 1, 1, 1, 1})));
  CHECK(equal(nn::ConstantPad1d({1, 0}, 2.5)(line), pad(line, {1, 0}, 2.5)));
  CHECK(equal(nn::ConstantPad2d(1, -1)(image), pad(image, {1, 1, 1, 1}, -1)));
  CHECK(equal(nn::ConstantPad3d(1, 3)(volume), pad(volume, {1, 1, 1, 1, 1, 1}, 3)));
  CHECK(equal(nn::ReflectionPad1d({2, 1})(line), pad(line, {2, 1}, PadMode::reflect)));
  CHECK(equal(nn::ReflectionPad2d(1)(image), pad(image, {1, 1, 1, 1}, PadMode::reflect)));
  CHECK(equal(nn::ReflectionPad3d(1)(volume), pad(volume, {1, 1, 1, 1, 1, 1}, PadMode::reflect)));
  CHECK(equal(nn::ReplicationPad1d(3)(line), pad(line, {3, 3}, PadMode::replicate)));
  CHECK(equal(nn::ReplicationPad2d({0, 1, 2, 3})(image), pad(image, {0, 1, 2, 3}, PadMode::replicate)));
  CHECK(equal(nn::ReplicationPad3d(2)(volume), pad(volume, {2, 2, 2, 2, 2, 2}, PadMode::replicate)));
  CHECK(equal(nn::CircularPad1d(2)(line), pad(line, {2, 2}, PadMode::circular)));
  CHECK(equal(nn::CircularPad2d(2)(image), pad(image, {2, 2, 2, 2}, PadMode::circular)));
  CHECK(equal(nn::CircularPad3d(1)(volume), pad(volume, {1, 1, 1, 1, 1, 1}, PadMode::circular)));
  nn::Sequential net(nn::ReflectionPad2d({1, 2, 0, 1}), nn::ConstantPad2d(1, 2.0));
  CHECK(equal(nn::clone(net)(image), net(image)));
}

TEST_CASE("windows as columns and back, and max pooling and back") {
  const Tensor image = randn({2, 3, 4, 6});
  CHECK(equal(nn::Unfold(2, {.stride = 2})(image), unfold(image, 2, {.stride = 2})));
  CHECK(equal(nn::Fold({4, 6}, 2, {.stride = 2})(nn::Unfold(2, {.stride = 2})(image)), image));
  const auto [y, places] = max_pool2d_with_indices(image, 2);
  const Tensor back = nn::MaxUnpool2d(2)(y, places);
  CHECK(back.sizes() == image.sizes());
  CHECK(equal(max_pool2d(masked_fill(back, back == 0, -100), 2), y));
  const auto line = max_pool1d_with_indices(image.flatten(1, 2), 2);
  CHECK(nn::MaxUnpool1d(2)(line.values, line.indices, 7).sizes() == Shape{2, 12, 7});
  const auto volume = max_pool3d_with_indices(image, 2);
  CHECK(nn::MaxUnpool3d(2)(volume.values, volume.indices, Tuple<3>(3, 4, 6)).sizes() == image.sizes());
}

TEST_CASE("softmax of channels, softmin, resizing by the old names") {
  const Tensor image = randn({2, 3, 4, 5});
  CHECK(equal(nn::Softmax2d()(image), softmax(image, 1)));
  CHECK(equal(nn::Softmax2d()(image[0]), softmax(image[0], 0)));
  CHECK(equal(nn::Softmin(1)(image), softmax(-image, 1)));
  CHECK(equal(nn::UpsamplingNearest2d({.scale_factor = {2}})(image), interpolate(image, {.scale_factor = {2}})));
  nn::UpsamplingBilinear2d up({.size = {7, 8}});
  CHECK(equal(up(image), interpolate(image, {.size = {7, 8}, .mode = ResizeMode::linear, .align_corners = true})));
  CHECK(equal(nn::clone(up)(image), up(image)));
}

TEST_CASE("L2Norm scales the channels' vectors to their factors") {
  nn::L2Norm norm(3, 5.0);
  const Tensor x = randn({2, 3, 4}), y = norm(x);
  CHECK((y.norm(2.0, 1) - 5).abs().max().item<double>() < 1e-5);
  CHECK(norm.state_dict().contains("weight"));
}

TEST_CASE("positional encodings alternate sines and cosines") {
  nn::PositionalEncoding pe(6, {.dropout = 0, .max_len = 10}),
      first(6, {.dropout = 0, .max_len = 10, .batch_first = true});
  const Tensor y = pe(zeros({4, 2, 6}));
  CHECK(std::abs(y(3, 1, 2).item<double>() - std::sin(3 * std::pow(10000.0, -2.0 / 6))) < 1e-6);
  CHECK(std::abs(y(3, 0, 5).item<double>() - std::cos(3 * std::pow(10000.0, -4.0 / 6))) < 1e-6);
  CHECK(equal(first(zeros({2, 4, 6})), y.transpose(0, 1)));
  CHECK(pe.state_dict().contains("pe"));
}

TEST_CASE("dropout of channels in one to three axes") {
  const Tensor ones_of = ones({3, 50, 4});
  for (const Tensor& y : {dropout1d(ones_of, 0.5), dropout2d(ones_of.unsqueeze(3), 0.5).squeeze(3),
                          dropout3d(ones_of.unsqueeze(3).unsqueeze(4), 0.5).squeeze(4).squeeze(3)}) {
    CHECK(equal(y.amax(2), y.amin(2)));  // whole channels
    const auto kept = (y.amax(2) == 2).sum().item<int>();
    CHECK(kept > 40);
    CHECK(kept < 110);
  }
  CHECK(dropout1d(ones({50, 4}), 0.5).amax(1).sum().item<double>() > 2);
  nn::FeatureAlphaDropout drop(0.4);
  const Tensor y = drop(randn({4, 500, 3}));
  CHECK(std::abs(y.mean().item<double>()) < 0.15);
  CHECK(std::abs(y.std().item<double>() - 1) < 0.15);
  CHECK((y.select(2, 0) == y.select(2, 1)).sum().item<int>() > 500);  // dropped channels have one value
  drop.eval();
  CHECK(equal(drop(ones_of), ones_of));
}

TEST_CASE("rows above max_norm are scaled down where they are looked up") {
  nn::Embedding table(4, 2, {.max_norm = 1.0});
  {
    no_grad guard;
    table.weight.fill_(3);
  }
  const Tensor y = table(tensor<int64_t>({1, 1, 2}));
  CHECK((y.norm(2.0, 1) - 1).abs().max().item<double>() < 1e-5);
  CHECK(table.weight(0, 0).item<double>() == 3);
  CHECK(std::abs(table.weight(1, 0).item<double>() - std::sqrt(0.5)) < 1e-5);
  nn::EmbeddingBag bag(
      4, 2,
      {.mode = nn::BagMode::sum, .padding_idx = -1, .max_norm = 2.0, .norm_type = 1.0, .include_last_offset = true});
  {
    no_grad guard;
    bag.weight.fill_(5);
  }
  const Tensor sums = bag(tensor<int64_t>({0, 1, 3}), tensor<int64_t>({0, 2, 3}));
  CHECK(sums.sizes() == Shape{2, 2});
  CHECK(std::abs(sums(0, 0).item<double>() - 2) < 1e-5);
  CHECK(sums(1, 0).item<double>() == 0);  // only the padding row
}

TEST_CASE("bags of one length give what bags with offsets give") {
  const Tensor index = tensor<int64_t>({0, 1, 4, 2, 2, 3, 2, 2, 2}).reshape({3, 3});  // row 2 may be the padding
  const Tensor offsets = tensor<int64_t>({0, 3, 6}), scale = rand({3, 3}), g = randn({3, 2});
  int compared = 0;
  for (const nn::BagMode mode : {nn::BagMode::sum, nn::BagMode::mean})
    for (const std::optional<int64_t> padding : {std::optional<int64_t>(), std::optional<int64_t>(2)})
      for (const bool weighted : {false, true}) {
        if (weighted && mode == nn::BagMode::mean) continue;
        nn::EmbeddingBag bag(5, 2, {.mode = mode, .padding_idx = padding});
        if (padding) {  // a row that counts for nothing, whatever it contains
          no_grad guard;
          bag.weight[2].fill_(std::numeric_limits<float>::infinity());
        }
        const Tensor weights = weighted ? scale : Tensor(), flat_weights = weighted ? scale.reshape({9}) : Tensor();
        const Tensor by_length = bag(index, {}, weights), by_offset = bag(index.reshape({9}), offsets, flat_weights);
        CHECK((by_length - by_offset).abs().max().item<double>() < 1e-6);
        const Tensor difference =
            grad({by_length}, {bag.weight}, {}, {g})[0] - grad({by_offset}, {bag.weight}, {}, {g})[0];
        CHECK(difference.abs().max().item<double>() < 1e-6);
        ++compared;
      }
  CHECK(compared == 6);
}

TEST_CASE("parameters by name, and functions in a Sequential") {
  nn::ParameterDict d;
  d.append("left", ones({2}));
  d.append("right", ones({3}));
  CHECK(d.size() == 2);
  CHECK(d.contains("left"));
  CHECK(!d.contains("top"));
  CHECK(d["right"].numel() == 3);
  CHECK(d.named_parameters()[1].first == "right");
  nn::Sequential net(nn::Lambda([](const Tensor& x) { return x * 2.0; }), nn::ReLU());
  CHECK(net(full({2}, 1.5)).sum().item<double>() == 6);
  CHECK(nn::clone(net)(full({2}, 1.5)).sum().item<double>() == 6);
}

TEST_CASE("parameters as one vector, and a norm folded into the convolution before it") {
  nn::Linear layer(3, 2);
  const std::vector<Tensor> parameters{layer.weight, layer.bias};
  const Tensor v = nn::parameters_to_vector(parameters);
  CHECK(v.sizes() == Shape{8});
  CHECK(v.requires_grad());
  nn::vector_to_parameters(arange(8).to(kFloat32), parameters);
  CHECK(layer.bias(1).item<double>() == 7);
  CHECK(layer.weight.is_leaf());

  nn::Conv2d conv(3, 4, 3, {.padding = 1, .bias = false});
  nn::BatchNorm2d norm(4);
  for (int i = 0; i < 3; ++i) norm(conv(randn({4, 3, 5, 5}) + 1));
  {
    no_grad guard;
    norm.weight.copy_(rand({4}) + 0.5);
    norm.bias.copy_(randn({4}));
  }
  norm.eval();
  const Tensor x = randn({2, 3, 5, 5});
  CHECK((nn::fuse_conv_bn_eval(conv, norm)(x) - norm(conv(x))).abs().max().item<double>() < 1e-5);
  nn::ConvTranspose2d transposed(conv.in_channels, conv.out_channels, 3);
  transposed.to(kFloat64);
  norm.to(kFloat64);
  const Tensor wide = x.to(kFloat64);
  const auto fused = nn::fuse_conv_bn_eval(transposed, norm);
  CHECK(fused.weight.dtype() == kFloat64);
  CHECK((nn::fuse_conv_bn_eval(transposed, norm)(wide) - norm(transposed(wide))).abs().max().item<double>() < 1e-12);
}

TEST_CASE("the distance of a triplet loss is a function") {
  const Tensor a = randn({4, 3}), p = randn({4, 3}), n = randn({4, 3});
  CHECK(equal(nn::TripletMarginWithDistanceLoss()(a, p, n), triplet_margin_loss(a, p, n)));
  nn::TripletMarginWithDistanceLoss loss([](const Tensor& x, const Tensor& y) { return (x - y).abs().sum(1); },
                                         {.margin = 0.5});
  const Tensor near = (a - p).abs().sum(1), far = (a - n).abs().sum(1);
  CHECK(equal(loss(a, p, n), relu(near - far + 0.5).mean()));
}
