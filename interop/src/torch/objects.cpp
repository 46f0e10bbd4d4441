#include "objects.h"

#include <levin/core/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace levin::interop::detail {

namespace {

enum class Function {
  ordered_dict, items, tensor_v2, tensor_v3, parameter, from_type, device, layout, encode,
  bytearray, complex
};

struct NamedFunction {
  std::string_view name;
  Function function;
};

/// Every function that a pickle may call. None of them does more than to build a value.
constexpr NamedFunction kFunctions[] = {
    {"collections.OrderedDict", Function::ordered_dict},
    {"collections.Counter", Function::ordered_dict},
    {"torch._utils._rebuild_tensor_v2", Function::tensor_v2},
    {"torch._utils._rebuild_tensor_v3", Function::tensor_v3},
    {"torch._utils._rebuild_parameter", Function::parameter},
    {"torch._utils._rebuild_parameter_with_state", Function::parameter},  // the state: Python's attributes, left out
    {"torch._tensor._rebuild_from_type_v2", Function::from_type},
    {"torch.Size", Function::items},
    {"torch.device", Function::device},
    {"torch.serialization._get_layout", Function::layout},
    {"_codecs.encode", Function::encode},
    {"builtins.bytearray", Function::bytearray},
    {"__builtin__.bytearray", Function::bytearray},
    {"builtins.set", Function::items},
    {"__builtin__.set", Function::items},
    {"builtins.frozenset", Function::items},
    {"__builtin__.frozenset", Function::items},
    {"builtins.complex", Function::complex},
    {"__builtin__.complex", Function::complex},
};

/// Classes that are named as arguments, and never called.
constexpr std::string_view kClasses[] = {"torch.Tensor", "torch.nn.parameter.Parameter"};

struct NamedType {
  std::string_view name;  ///< torch.float32
  std::string_view storage;
  DType dtype;
};
constexpr NamedType kTypes[] = {
    {"torch.float64", "DoubleStorage", DType::f64},      {"torch.float32", "FloatStorage", DType::f32},
    {"torch.float16", "HalfStorage", DType::f16},        {"torch.bfloat16", "BFloat16Storage", DType::bf16},
    {"torch.int64", "LongStorage", DType::i64},          {"torch.int32", "IntStorage", DType::i32},
    {"torch.int16", "ShortStorage", DType::i16},         {"torch.int8", "CharStorage", DType::i8},
    {"torch.uint8", "ByteStorage", DType::u8},           {"torch.bool", "BoolStorage", DType::boolean},
    {"torch.complex64", "ComplexFloatStorage", DType::c64}, {"torch.complex128", "ComplexDoubleStorage", DType::c128},
};
/// Types that Levin lacks. They may be named, but no tensor may have them.
constexpr std::string_view kOtherTypes[] = {
    "torch.uint16", "torch.uint32", "torch.uint64", "torch.complex32", "torch.float8_e4m3fn", "torch.float8_e5m2",
    "torch.float8_e4m3fnuz", "torch.float8_e5m2fnuz", "torch.float8_e8m0fnu", "torch.float4_e2m1fn_x2",
    "torch.qint8", "torch.quint8", "torch.qint32", "torch.quint4x2", "torch.quint2x4"};
constexpr std::string_view kOtherStorages[] = {"QInt8Storage", "QUInt8Storage", "QInt32Storage", "QUInt4x2Storage",
                                               "QUInt2x4Storage", "ComplexHalfStorage"};
constexpr std::string_view kUntyped = "UntypedStorage";
constexpr std::size_t kLongestName = 1000;  // of a class

template <class Names>
bool holds(const Names& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

const NamedFunction* function_named(std::string_view name) {
  const auto found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                  [&](const NamedFunction& f) { return f.name == name; });
  return found == std::end(kFunctions) ? nullptr : found;
}

const NamedType* type_of_storage(std::string_view storage) {
  const auto found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const NamedType& t) { return t.storage == storage; });
  return found == std::end(kTypes) ? nullptr : found;
}

const NamedType* type_named(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const NamedType& t) { return t.name == name; });
  return found == std::end(kTypes) ? nullptr : found;
}

/// Returns the class of "torch.FloatStorage", "torch.storage.UntypedStorage" or "torch.cuda.FloatStorage", or nothing.
std::string_view storage_class(std::string_view name) {
  for (const std::string_view module : {"torch.storage.", "torch.cuda.", "torch."}) {
    if (!name.starts_with(module)) continue;
    const std::string_view type = name.substr(module.size());
    const bool known =
        type_of_storage(type) || type == kUntyped || type == "TypedStorage" || holds(kOtherStorages, type);
    return known ? type : std::string_view();
  }
  return {};
}

/// Returns the bytes of a text whose characters are all below 256, as text.encode("latin1").
std::string latin1(const std::string& text, const std::string& what) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      out += text[i];
    } else {
      const unsigned second = i + 1 < text.size() ? static_cast<unsigned char>(text[++i]) : 0U;
      if ((first != 0xc2 && first != 0xc3) || (second & 0xc0U) != 0x80) refuse_damage(what, "its bytes are no Latin-1");
      out += static_cast<char>((first & 3U) << 6 | (second & 0x3fU));
    }
  }
  return out;
}

/// The arguments of a call, each checked to be there and to be of its type.
class Arguments {
 public:
  Arguments(const NodeIds& ids, const PickleDocument& document, std::string_view function)
      : ids_(ids), document_(document), function_(function) {}

  std::size_t size() const { return ids_.size(); }
  const Node& at(std::size_t i) const {
    if (i >= ids_.size()) refuse(i);
    return document_.nodes[ids_[i]];
  }
  template <class T>
  const T& get(std::size_t i) const {
    const T* value = std::get_if<T>(&at(i));
    if (!value) refuse(i);
    return *value;
  }
  Shape sizes(std::size_t i) const {
    Shape out;
    const NodeIds& items = get<ListNode>(i).items;
    if (items.size() > static_cast<std::size_t>(kMaxDims))
      refuse_file(document_.what, fmt::format("holds a tensor of {} dimensions; at most {} are read. Reshape it first.",
                                              items.size(), kMaxDims));
    for (const NodeId id : items) {
      const std::int64_t* value = std::get_if<std::int64_t>(&document_.nodes[id]);
      if (!value || *value < 0) refuse(i);
      out.push_back(*value);
    }
    return out;
  }

 private:
  [[noreturn]] void refuse(std::size_t i) const {
    refuse_damage(document_.what, fmt::format("argument {} of {} is not as PyTorch writes it", i, function_));
  }
  const NodeIds& ids_;
  const PickleDocument& document_;
  std::string_view function_;
};

Node device_of(const Arguments& arguments) {
  std::string name = arguments.get<std::string>(0);
  if (arguments.size() > 1) name += fmt::format(":{}", arguments.get<std::int64_t>(1));
  return name;
}

Node ordered_dict(const Arguments& arguments, const PickleDocument& document) {
  DictNode dict;
  if (arguments.size() == 0) return dict;
  if (const DictNode* other = std::get_if<DictNode>(&arguments.at(0))) return *other;
  for (const NodeId pair : arguments.get<ListNode>(0).items) {
    const ListNode* list = std::get_if<ListNode>(&document.nodes[pair]);
    if (!list || list->items.size() != 2) refuse_damage(document.what, "a pair of an OrderedDict has no two items");
    dict.items.insert(dict.items.end(), list->items.begin(), list->items.end());
  }
  return dict;
}

}  // namespace

io::FileBytes record_content(const io::FileBytes& file, const io::ZipMember& member, const std::string& what,
                             bool lazily) {
  return io::zip_content(file, member, what, lazily || member.crc == 0);
}

std::string_view storage_class_of(DType dtype) {
  for (const NamedType& t : kTypes)
    if (t.dtype == dtype) return t.storage;
  return {};
}

TorchObjects::TorchObjects(const io::FileBytes& file, const std::vector<io::ZipMember>& members,
                           const std::string& folder, const std::string& what, const LoadTorchOptions& options)
    : file_(file), what_(what), options_(options) {
  const std::string start = folder + "data/";
  for (const io::ZipMember& m : members) {
    if (!m.name.starts_with(start)) continue;
    if (!records_.emplace(m.name.substr(start.size()), &m).second)
      refuse_damage(what, fmt::format("it has two records \"{}\"", printable(m.name)));
  }
}

void TorchObjects::refuse_type(std::string_view type) const {
  refuse_file(what_, fmt::format("holds a tensor of {}, which is not read. Convert it in Python first.",
                                 type.empty() ? std::string("an unknown class") : printable(type)));
}

Node TorchObjects::global(std::string name) {
  const bool known = function_named(name) || holds(kClasses, name) || !storage_class(name).empty();
  if (known || (options_.any_class && name.size() <= kLongestName)) return GlobalNode{std::move(name)};
  if (type_named(name) || holds(kOtherTypes, name)) return name;
  refuse_file(what_, fmt::format("names {}, which is none of the classes of tensors and plain values, and nothing is "
                                 "executed. Save state_dict() and plain values, or read it with any_class.",
                                 printable(name)));
}

Node TorchObjects::call(const std::string& name, const NodeIds& ids, const PickleDocument& document) {
  const NamedFunction* known = function_named(name);
  if (!known) {
    if (options_.any_class) return GlobalNode{name};
    refuse_damage(what_, fmt::format("it calls {}, which is no function", printable(name)));
  }
  const Arguments arguments(ids, document, known->name);
  switch (known->function) {
    case Function::ordered_dict: return ordered_dict(arguments, document);
    case Function::items: return arguments.size() == 0 ? ListNode{} : arguments.get<ListNode>(0);
    case Function::tensor_v2: return rebuild_tensor(ids, document, false);
    case Function::tensor_v3: return rebuild_tensor(ids, document, true);
    case Function::parameter: return rebuild_parameter(ids, document);
    case Function::from_type: {  // function, class, arguments, Python's attributes
      const std::string& inner = arguments.get<GlobalNode>(0).name;
      const NamedFunction* builder = function_named(inner);
      if (!builder || builder->function == Function::from_type)
        refuse_damage(what_, fmt::format("a tensor is built by {}", printable(inner)));
      return call(inner, arguments.get<ListNode>(2).items, document);
    }
    case Function::device: return device_of(arguments);
    case Function::layout: return arguments.get<std::string>(0);
    case Function::encode:
    case Function::bytearray:
      if (arguments.size() == 0) return std::string();
      return arguments.size() == 1 ? arguments.get<std::string>(0) : latin1(arguments.get<std::string>(0), what_);
    case Function::complex: return ListNode{ids};
  }
  return {};
}

/// Arguments: ('storage', class, key, location, number of elements).
Node TorchObjects::persistent(const Node& id, const PickleDocument& document) {
  const ListNode* items = std::get_if<ListNode>(&id);
  if (!items) refuse_damage(what_, "a storage has no description");
  const Arguments arguments(items->items, document, "a storage");
  if (arguments.get<std::string>(0) != "storage") refuse_damage(what_, "a persistent value is no storage");
  const std::string_view type = storage_class(arguments.get<GlobalNode>(1).name);
  const std::string& key = arguments.get<std::string>(2);
  const std::int64_t count = arguments.get<std::int64_t>(4);
  const Tensor& bytes = storage_bytes(key);
  const NamedType* known = type_of_storage(type);
  if (!known && type != kUntyped) refuse_type(type);
  const std::int64_t width = known ? size_of(known->dtype) : 1;
  if (count < 0 || count != bytes.numel() / width || bytes.numel() % width != 0) {
    refuse_damage(what_, fmt::format("storage \"{}\" should have {} elements of {} bytes, and has {} bytes",
                                     printable(key), count, width, bytes.numel()));
  }
  return StorageNode{bytes, std::string(type)};
}

const Tensor& TorchObjects::storage_bytes(const std::string& key) {
  const auto found = storages_.find(key);
  if (found != storages_.end()) return found->second;
  return storages_.emplace(key, read_storage(key).to(options_.map_location)).first->second;
}

/// Returns the bytes of a storage, (bytes), on the host: mapped if possible, else copied.
Tensor TorchObjects::read_storage(const std::string& key) const {
  const auto record = records_.find(key);
  if (record == records_.end()) refuse_damage(what_, fmt::format("storage \"{}\" is missing", printable(key)));
  const io::FileBytes content = record_content(file_, *record->second, what_, options_.mmap);
  const auto size = static_cast<std::int64_t>(content.data.size());
  constexpr std::uintptr_t kMostAligned = 8;  // of complex numbers, each part
  if (options_.mmap && size > 0 && reinterpret_cast<std::uintptr_t>(content.data.data()) % kMostAligned == 0)
    return from_blob(content.data.data(), {size}, kUInt8, [keeper = content.keeper] {});
  Tensor bytes = empty({size}, kUInt8);
  if (size > 0) std::memcpy(bytes.raw_data(), content.data.data(), content.data.size());
  return bytes;
}

/// Arguments: storage, offset, sizes, strides, requires_grad, hooks, then the dtype of version 3, then metadata, which
/// marks conjugated and negated views.
Tensor TorchObjects::rebuild_tensor(const NodeIds& ids, const PickleDocument& document, bool with_dtype) {
  const Arguments arguments(ids, document, "a tensor");
  const auto& storage = arguments.get<StorageNode>(0);
  const Layout layout = layout_of(storage, ids, document, with_dtype);
  const std::size_t metadata = with_dtype ? 7 : 6;
  if (arguments.size() > metadata && !arguments.get<DictNode>(metadata).items.empty())
    refuse_file(what_, "holds a view that conjugates or negates. Save x.resolve_conj().resolve_neg().");
  const bool requires_grad = arguments.get<bool>(4) && is_differentiable(layout.dtype);
  Tensor result;
  if (is_empty(layout)) {
    result = empty(layout.sizes, {.dtype = layout.dtype, .device = options_.map_location});
  } else {
    check_extent(layout, storage.bytes.numel());
    if (layout.dtype == DType::boolean) check_booleans(storage.bytes);
    result = alias(storage.bytes, layout.sizes, layout.strides, layout.offset, layout.dtype);
  }
  return requires_grad ? result.requires_grad_() : result;
}

TorchObjects::Layout TorchObjects::layout_of(const StorageNode& storage, const NodeIds& ids,
                                             const PickleDocument& document, bool with_dtype) const {
  const Arguments arguments(ids, document, "a tensor");
  const std::string_view name = with_dtype ? std::string_view(arguments.get<std::string>(6)) : std::string_view();
  const NamedType* type = with_dtype ? type_named(name) : type_of_storage(storage.type);
  if (!type) refuse_type(with_dtype ? name : std::string_view(storage.type));
  return {type->dtype, arguments.get<std::int64_t>(1), arguments.sizes(2), arguments.sizes(3)};
}

/// True if a size is 0; throws if the others have no product.
bool TorchObjects::is_empty(const Layout& t) const {
  std::int64_t bytes = size_of(t.dtype);
  bool empty = false;
  for (const std::int64_t size : t.sizes) {
    empty = empty || size == 0;
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes))
      refuse_damage(what_, fmt::format("the size of a tensor of shape {} overflows", to_string(t.sizes)));
  }
  return empty;
}

/// Throws unless every element lies within the storage's bytes.
void TorchObjects::check_extent(const Layout& t, std::int64_t bytes) const {
  std::int64_t last = t.offset;
  bool overflows = t.strides.size() != t.sizes.size() || t.offset < 0;
  for (int d = 0; d < t.sizes.size() && !overflows; ++d) {
    std::int64_t reach = 0;
    overflows = __builtin_mul_overflow(t.sizes[d] - 1, t.strides[d], &reach) ||
                __builtin_add_overflow(last, reach, &last);
  }
  if (overflows || last >= bytes / size_of(t.dtype)) {
    refuse_damage(what_, fmt::format("a tensor of shape {}, strides {} and offset {} exceeds its storage of {} bytes",
                                     to_string(t.sizes), to_string(t.strides), t.offset, bytes));
  }
}

void TorchObjects::check_booleans(const Tensor& bytes) {
  if (!checked_booleans_.insert(bytes.storage().get()).second) return;
  const Tensor host = bytes.cpu();
  const auto* p = static_cast<const std::uint8_t*>(host.raw_data());
  if (std::any_of(p, p + host.numel(), [](std::uint8_t v) { return v > 1; }))
    refuse_damage(what_, "one of its booleans is neither 0 nor 1");
}

/// Arguments: tensor, requires_grad, hooks. The parameter is another handle, so that its tensor does not require grad.
Node TorchObjects::rebuild_parameter(const NodeIds& ids, const PickleDocument& document) const {
  const Arguments arguments(ids, document, "a parameter");
  const Tensor& data = arguments.get<Tensor>(0);
  const Tensor parameter = alias(data, data.sizes(), data.strides(), data.storage_offset());
  return arguments.get<bool>(1) && is_differentiable(data.dtype()) ? parameter.requires_grad_() : parameter;
}

}  // namespace levin::interop::detail
