#include "model.h"

#include <levin/core/error.h>
#include <levin/interop/protobuf.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace levin::interop::onnx {

namespace {

class Decoder {
 public:
  explicit Decoder(const std::string& what) : what_(what) {}

  Model model(std::span<const std::byte> data) {
    Model m;
    m.opset = 0;
    bool has_graph = false;
    each(data, [&](const ProtoField& f) {
      if (f.number == 1) m.ir_version = f.integer();
      if (f.number == 2) m.producer = f.text();
      if (f.number == 7) m.graph = graph(f.bytes()), has_graph = true;
      if (f.number == 8) read_opset(f.bytes(), m);
      if (f.number == 25) refuse("it defines functions of its own");
    });
    if (!has_graph || m.opset == 0) damaged("it has no graph or no operator set");
    return m;
  }

 private:
  template <class F>
  void each(std::span<const std::byte> data, const F& f) {
    ProtoReader reader(data, what_);
    ProtoField field;
    while (reader.next(field)) f(field);
  }

  [[noreturn]] void damaged(const std::string& how) const {
    throw IoError(fmt::format("[load_onnx] {} is damaged: {}. Use another copy of the file.", what_, how));
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw IoError(fmt::format("[load_onnx] {} cannot be read: {}. Export the network again without that.", what_, why));
  }

  void read_opset(std::span<const std::byte> data, Model& m) {
    std::string domain;
    std::int64_t version = 0;
    each(data, [&](const ProtoField& f) {
      if (f.number == 1) domain = f.text();
      if (f.number == 2) version = f.integer();
    });
    if (domain.empty() || domain == "ai.onnx") m.opset = version;
  }

  Graph graph(std::span<const std::byte> data) {
    Graph g;
    each(data, [&](const ProtoField& f) {
      switch (f.number) {
        case 1:
          g.nodes.push_back(node(f.bytes()));
          break;
        case 2:
          g.name = f.text();
          break;
        case 5: {
          std::string name;
          const Tensor t = tensor(f.bytes(), name);
          g.initializers.emplace_back(name, t);
          break;
        }
        case 11:
          g.inputs.push_back(value(f.bytes()));
          break;
        case 12:
          g.outputs.push_back(value(f.bytes()));
          break;
        case 15:
          refuse("it has sparse tensors");
          break;
        default:
          break;
      }
    });
    return g;
  }

  Node node(std::span<const std::byte> data) {
    Node n;
    each(data, [&](const ProtoField& f) {
      switch (f.number) {
        case 1:
          n.inputs.emplace_back(f.text());
          break;
        case 2:
          n.outputs.emplace_back(f.text());
          break;
        case 3:
          n.name = f.text();
          break;
        case 4:
          n.op = f.text();
          break;
        case 5:
          n.attributes.push_back(attribute(f.bytes()));
          break;
        case 7:
          n.domain = f.text();
          break;
        default:
          break;
      }
    });
    return n;
  }

  Attribute attribute(std::span<const std::byte> data) {
    Attribute a;
    each(data, [&](const ProtoField& f) {
      switch (f.number) {
        case 1:
          a.name = f.text();
          break;
        case 2:
          a.real = f.real();
          break;
        case 3:
          a.integer = f.integer();
          break;
        case 4:
          a.text = f.text();
          break;
        case 5: {
          std::string name;
          a.tensor = tensor(f.bytes(), name);
          break;
        }
        case 7:
          f.append_to(a.reals);
          break;
        case 8:
          f.append_to(a.integers);
          break;
        case 9:
          a.texts.emplace_back(f.text());
          break;
        case 20:
          if (const std::int64_t t = f.integer(); t >= 0 && t <= 8) a.type = static_cast<Attribute::Type>(t);
          break;
        default:
          break;
      }
    });
    return a;
  }

  Value value(std::span<const std::byte> data) {
    Value v;
    v.shaped = false;
    each(data, [&](const ProtoField& f) {
      if (f.number == 1) v.name = f.text();
      if (f.number == 2)
        each(f.bytes(), [&](const ProtoField& type) {
          if (type.number == 1) tensor_type(type.bytes(), v);
        });
    });
    return v;
  }

  void tensor_type(std::span<const std::byte> data, Value& v) {
    each(data, [&](const ProtoField& f) {
      if (f.number == 1) v.dtype = dtype(f.integer(), v.name);
      if (f.number != 2) return;
      v.shaped = true;
      each(f.bytes(), [&](const ProtoField& dim) {
        if (dim.number != 1) return;
        Dim d;
        each(dim.bytes(), [&](const ProtoField& size) {
          if (size.number == 1) d.size = size.integer();
          if (size.number == 2) d.name = size.text();
        });
        v.sizes.push_back(d);
      });
    });
  }

  DType dtype(std::int64_t number, const std::string& name) const {
    for (int i = 0; i < kRealDTypeCount; ++i)
      if (type_number(static_cast<DType>(i)) == number) return static_cast<DType>(i);
    refuse(fmt::format("tensor \"{}\" has the element type {} of ONNX, which Levin does not have", name, number));
  }

  /// The fields of a tensor; numbers are in raw_data, or in a list of a wider type.
  struct TensorFields {
    std::vector<std::int64_t> dims{}, integers{};
    std::vector<float> reals{};
    std::vector<double> reals64{};
    std::span<const std::byte> raw{};
    std::int64_t type = 0;
    bool has_raw = false;
  };

  Tensor tensor(std::span<const std::byte> data, std::string& name) {
    TensorFields t;
    each(data, [&](const ProtoField& f) {
      switch (f.number) {
        case 1:
          f.append_to(t.dims);
          break;
        case 2:
          t.type = f.integer();
          break;
        case 4:
          f.append_to(t.reals);
          break;
        case 5:
        case 7:
        case 11:
          f.append_to(t.integers);
          break;
        case 8:
          name = f.text();
          break;
        case 9:
          t.raw = f.bytes(), t.has_raw = true;
          break;
        case 10:
          f.append_to(t.reals64);
          break;
        case 14:
          if (f.integer() != 0) refuse(fmt::format("tensor \"{}\" is in another file", name));
          break;
        default:
          break;
      }
    });
    return filled(t, name);
  }

  Tensor filled(const TensorFields& t, const std::string& name) {
    const DType type = dtype(t.type, name);
    if (t.dims.size() > kMaxDims) refuse(fmt::format("tensor \"{}\" has {} dimensions", name, t.dims.size()));
    auto bytes = static_cast<std::uint64_t>(size_of(type));
    for (const std::int64_t size : t.dims) {
      const auto factor = static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1));
      if (size < 0 || bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / factor)
        damaged(fmt::format("the sizes of tensor \"{}\" overflow", name));
      bytes *= factor;
    }
    const Shape sizes(t.dims.begin(), t.dims.end());
    const auto count = static_cast<std::size_t>(sizes.numel());
    const std::size_t given = t.has_raw          ? t.raw.size() / static_cast<std::size_t>(size_of(type))
                              : type == kFloat32 ? t.reals.size()
                              : type == kFloat64 ? t.reals64.size()
                                                 : t.integers.size();
    if (given != count || (t.has_raw && t.raw.size() % static_cast<std::size_t>(size_of(type)) != 0))
      damaged(fmt::format("tensor \"{}\" of shape {} has {} values", name, to_string(sizes), given));
    Tensor y = empty(sizes, {.dtype = type});
    if (count == 0) return y;
    if (t.has_raw)
      std::memcpy(y.raw_data(), t.raw.data(), t.raw.size());
    else
      copy_list(t, y);
    if (type == kBool) {
      const auto* p = static_cast<const std::uint8_t*>(y.raw_data());
      if (std::any_of(p, p + count, [](std::uint8_t v) { return v > 1; }))
        damaged(fmt::format("tensor \"{}\" of bool has values other than 0 and 1", name));
    }
    return y;
  }

  static void copy_list(const TensorFields& t, const Tensor& y) {
    if (y.dtype() == kFloat32) {
      std::memcpy(y.raw_data(), t.reals.data(), t.reals.size() * sizeof(float));
    } else if (y.dtype() == kFloat64) {
      std::memcpy(y.raw_data(), t.reals64.data(), t.reals64.size() * sizeof(double));
    } else {  // little-endian: the low bytes are the value, also of 16-bit floats, which are stored as their bits
      const auto size = static_cast<std::size_t>(size_of(y.dtype()));
      for (std::size_t i = 0; i < t.integers.size(); ++i)
        std::memcpy(static_cast<std::byte*>(y.raw_data()) + i * size, &t.integers[i], size);
    }
  }

  const std::string& what_;
};

}  // namespace

Model decode(std::span<const std::byte> data, const std::string& what) { return Decoder(what).model(data); }

}  // namespace levin::interop::onnx
