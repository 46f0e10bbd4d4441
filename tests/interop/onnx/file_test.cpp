// Bytes of ONNX files and of protocol-buffer messages, also damaged ones.
#include <levin/autograd/autograd.h>
#include <levin/autograd/ops.h>
#include <levin/interop/onnx.h>
#include <levin/interop/protobuf.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>

#include "interop/src/onnx/model.h"
#include "support/comparison.h"

using namespace levin;
using interop::ProtoField;
using interop::ProtoMessage;
using interop::ProtoReader;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

io::Bytes small_network() {
  nn::Sequential net(nn::Conv2d(1, 2, 3), nn::ReLU(), nn::Flatten(), nn::Linear(8, 2), nn::Softmax(1));
  return interop::encode_onnx(net, [&](const std::vector<Tensor>& x) { return net.call(x); }, {randn({1, 1, 4, 4})});
}

/// Reads a message to its end; returns its refusal.
std::string refusal_of_message(const std::string& text, const std::function<void(const ProtoField&)>& use) {
  const std::string what = "m";
  try {
    ProtoReader reader(bytes_of(text), what);
    ProtoField field;
    while (reader.next(field)) use(field);
  } catch (const IoError& e) {
    return e.what();
  }
  return "accepted";
}

std::string refusal_of_model(const ProtoMessage& graph) {
  ProtoMessage m, opset;
  m.integer(1, 8).message(7, graph).message(8, opset.integer(2, 17));
  try {
    interop::OnnxModel model(bytes_of(m.text()), "x.onnx");
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

/// A graph with an initializer of these fields.
ProtoMessage with_tensor(const ProtoMessage& fields) { return ProtoMessage().message(5, fields); }

}  // namespace

TEST_CASE("messages have the bytes of the protocol-buffer documentation, and are read back") {
  CHECK(ProtoMessage().varint(1, 150).text() == "\x08\x96\x01");
  CHECK(ProtoMessage().bytes(2, "testing").text() == "\x12\x07testing");
  CHECK(ProtoMessage().integer(1, -2).text().size() == 11);
  const std::string text =
      ProtoMessage().integer(1, -2).fixed32(2, 0.5f).fixed64(3, 0.25).bytes(4, "ab").packed(5, {1, 2}).text();
  std::vector<double> reals;
  std::string seen;
  CHECK(refusal_of_message(text, [&](const ProtoField& f) {
          if (f.number == 1) CHECK(f.integer() == -2);
          if (f.number == 2) CHECK(f.real() == 0.5f);
          if (f.number == 3) CHECK(f.real64() == 0.25);
          if (f.number == 4) CHECK(f.text() == "ab");
          if (f.number == 5) f.append_to(reals);
          seen += std::to_string(f.number);
        }) == "accepted");
  CHECK(seen == "12345");
  CHECK(reals == std::vector<double>{1, 2});
  std::vector<int64_t> packed, spread;
  refusal_of_message("\x0a\x03\x01\x96\x01", [&](const ProtoField& f) { f.append_to(packed); });
  refusal_of_message(std::string("\x08\x01\x08\x02"), [&](const ProtoField& f) { f.append_to(spread); });
  CHECK(packed == std::vector<int64_t>{1, 150});
  CHECK(spread == std::vector<int64_t>{1, 2});
}

TEST_CASE("damaged messages are refused with one sentence") {
  const auto nothing = [](const ProtoField&) {};
  CHECK(refusal_of_message("\x08", nothing) ==
        "[protobuf] m is damaged: it ends inside a number. Use another copy of the file.");
  CHECK(refusal_of_message(std::string("\x0d\x01", 2), nothing).find("it ends inside a number") != std::string::npos);
  CHECK(refusal_of_message("\x08" + std::string(10, '\xff'), nothing).find("a number has more than ten bytes") !=
        std::string::npos);
  CHECK(refusal_of_message("\x12\x04ten", nothing).find("field 2 has 4 bytes, but 3 are left") != std::string::npos);
  CHECK(refusal_of_message("\x0b", nothing).find("field 1 has the wire type 3") != std::string::npos);
  CHECK(refusal_of_message(std::string(1, '\0'), nothing).find("field 0 is no field number") != std::string::npos);
  const std::string number = ProtoMessage().integer(1, 1).text(), words = ProtoMessage().bytes(1, "a").text();
  CHECK(refusal_of_message(number, [](const ProtoField& f) { f.text(); }).find("field 1 is no text or message") !=
        std::string::npos);
  CHECK(refusal_of_message(number, [](const ProtoField& f) { f.real(); }).find("field 1 is no float") !=
        std::string::npos);
  CHECK(refusal_of_message(number, [](const ProtoField& f) { f.real64(); }).find("field 1 is no double") !=
        std::string::npos);
  CHECK(refusal_of_message(words, [](const ProtoField& f) { f.integer(); }).find("field 1 is no whole number") !=
        std::string::npos);
}

TEST_CASE("a file that ends early is refused wherever it ends") {
  const io::Bytes whole = small_network();
  interop::OnnxModel model(whole, "whole.onnx");
  CHECK(model({randn({2, 1, 4, 4})})[0].sizes() == Shape{2, 2});
  for (std::size_t n = 0; n < whole.size(); ++n)
    CHECK_THROWS_AS(interop::OnnxModel(std::span(whole).first(n), "part.onnx"), IoError);
}

TEST_CASE("a file with a changed bit is refused or runs, but does no harm") {
  const io::Bytes whole = small_network();
  const Tensor x = randn({2, 1, 4, 4});
  const no_grad guard;
  int refused = 0;
  for (std::size_t n = 0; n < whole.size(); ++n) {
    io::Bytes changed = whole;
    changed[n] ^= static_cast<std::byte>(1 << (n * 5 % 8));
    try {
      interop::OnnxModel model(changed, "changed.onnx");
      model({x});
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 0);
  CHECK(refused < static_cast<int>(whole.size()));
}

TEST_CASE("tensors of other writers: lists of wider types instead of raw bytes") {
  const auto loaded = [](const ProtoMessage& t) {
    ProtoMessage graph = with_tensor(t), value, model, opset, identity;
    identity.bytes(1, "t").bytes(2, "y").bytes(4, "Identity");
    graph.message(1, identity).message(12, value.bytes(1, "y"));
    model.integer(1, 8).message(7, graph).message(8, opset.integer(2, 17));
    interop::OnnxModel m(bytes_of(model.text()), "x.onnx");
    return m({})[0];
  };
  ProtoMessage f16, i32, boolean, f32, f64;
  f16.integer(1, 2).integer(2, 10).bytes(8, "t").integer(5, 0x3c00).integer(5, 0xc000);
  CHECK(test::largest_difference(loaded(f16).to(kFloat32), tensor({1.f, -2.f})) == 0);
  i32.integer(1, 2).integer(2, 6).bytes(8, "t").integer(5, -3).integer(5, 4);
  CHECK(test::largest_difference(loaded(i32).to(kInt64), tensor({int64_t{-3}, int64_t{4}})) == 0);
  boolean.integer(1, 2).integer(2, 9).bytes(8, "t").integer(5, 1).integer(5, 0);
  CHECK(test::largest_difference(loaded(boolean).to(kInt64), tensor({int64_t{1}, int64_t{0}})) == 0);
  f32.integer(1, 2).integer(2, 1).bytes(8, "t").fixed32(4, 1.5f).fixed32(4, -2.f);
  CHECK(test::largest_difference(loaded(f32), tensor({1.5f, -2.f})) == 0);
  f64.integer(1, 2).integer(2, 11).bytes(8, "t").packed(10, {0.1, 0.2});
  CHECK(test::largest_difference(loaded(f64), tensor({0.1, 0.2}, {.dtype = kFloat64})) == 0);
}

TEST_CASE("tensors that are not what they say are refused") {
  const auto refused = [](const ProtoMessage& t) { return refusal_of_model(with_tensor(t)); };
  CHECK(refused(ProtoMessage().integer(1, 3).integer(2, 1).bytes(8, "w").bytes(9, "12345678")) ==
        "[load_onnx] x.onnx is damaged: tensor \"w\" of shape (3,) has 2 values. Use another copy of the file.");
  CHECK(refused(ProtoMessage().integer(1, 1).integer(2, 1).bytes(8, "w").bytes(9, "12345678"))
            .find("tensor \"w\" of shape (1,) has 2 values") != std::string::npos);
  CHECK(refused(ProtoMessage().integer(1, 2).integer(2, 1).bytes(8, "w").bytes(9, "123456789")).find("has 2 values") !=
        std::string::npos);
  CHECK(refused(ProtoMessage().integer(1, -1).integer(2, 1).bytes(8, "w")).find("the sizes of tensor \"w\" overflow") !=
        std::string::npos);
  CHECK(refused(ProtoMessage().integer(1, 1L << 40).integer(1, 1L << 40).integer(2, 1).bytes(8, "w"))
            .find("the sizes of tensor \"w\" overflow") != std::string::npos);
  CHECK(refused(ProtoMessage().integer(1, 1).integer(2, 9).bytes(8, "w").bytes(9, "\x02"))
            .find("tensor \"w\" of bool has values other than 0 and 1") != std::string::npos);
  CHECK(refused(ProtoMessage().integer(2, 8).bytes(8, "w")) ==
        "[load_onnx] x.onnx cannot be read: tensor \"w\" has the element type 8 of ONNX, which Levin does not have. "
        "Export "
        "the network again without that.");
  CHECK(refused(ProtoMessage().integer(2, 1).bytes(8, "w").integer(14, 1)).find("tensor \"w\" is in another file") !=
        std::string::npos);
  ProtoMessage deep;
  for (int d = 0; d < 9; ++d) deep.integer(1, 1);
  CHECK(refused(deep.integer(2, 1).bytes(8, "w")).find("tensor \"w\" has 9 dimensions") != std::string::npos);
  CHECK(refusal_of_model(ProtoMessage().bytes(15, "")).find("it has sparse tensors") != std::string::npos);
  ProtoMessage functions;
  functions.bytes(25, "");
  CHECK_THROWS_WITH_AS(interop::OnnxModel(bytes_of(functions.text()), "x.onnx"),
                       "[load_onnx] x.onnx cannot be read: it defines functions of its own. Export the network again "
                       "without that.",
                       IoError);
}
