#include "safetensors_header.h"

#include <nlohmann/json.hpp>

#include <array>
#include <set>

namespace levin::interop {
namespace {

constexpr std::array<const char*, kRealDTypeCount> kNames = {"F64", "F32", "F16", "BF16", "I64",
                                                         "I32", "I16", "I8",  "U8",   "BOOL"};

/// Handles the parser's events one by one and accepts only the grammar of the format, so that no deep or wide document
/// is ever built in memory.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& what) : what_(what) {}
  Header take() { return std::move(header_); }

  bool null() override { refuse("a null"); }
  bool boolean(bool) override { refuse("a boolean"); }
  bool number_integer(number_integer_t v) override { refuse("the number " + std::to_string(v)); }
  bool number_float(number_float_t, const string_t& text) override { refuse("the number " + text); }
  bool binary(binary_t&) override { refuse("binary data"); }

  bool number_unsigned(number_unsigned_t v) override {
    if (place_ == Place::shape) {
      if (v > static_cast<number_unsigned_t>(INT64_MAX)) refuse("the size " + std::to_string(v));
      if (entry_.sizes.size() == kMaxDims) refuse("more than 8 dimensions");
      entry_.sizes.push_back(static_cast<int64_t>(v));
    } else if (place_ == Place::offsets && offsets_ < 2) {
      (offsets_++ == 0 ? entry_.begin : entry_.end) = v;
    } else {
      refuse("the number " + std::to_string(v));
    }
    return true;
  }

  bool string(string_t& v) override {
    if (place_ == Place::metadata) {
      if (!header_.metadata.emplace(key_, v).second) refuse("the metadata key \"" + key_ + "\" twice");
    } else if (place_ == Place::entry && key_ == "dtype") {
      entry_.dtype = dtype_named(v);
    } else {
      refuse("the text \"" + v + "\"");
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::before) {
      place_ = Place::root;
    } else if (place_ == Place::root && key_ == "__metadata__") {
      place_ = Place::metadata;
    } else if (place_ == Place::root) {
      place_ = Place::entry;
      entry_ = {};
      entry_.name = key_;
      fields_ = {};
    } else {
      refuse("an object");
    }
    return true;
  }

  bool key(string_t& v) override {
    if (place_ == Place::root && !names_.insert(v).second) refuse("two entries of this name");
    if (place_ == Place::root) tensor_ = v;
    if (place_ == Place::entry) {
      const int field = v == "dtype" ? 0 : v == "shape" ? 1 : v == "data_offsets" ? 2 : -1;
      if (field < 0) refuse("the field \"" + v + "\"");
      if (std::exchange(fields_[static_cast<std::size_t>(field)], true)) refuse("the field \"" + v + "\" twice");
    }
    key_ = v;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::entry || key_ == "dtype") refuse("an array");
    place_ = key_ == "shape" ? Place::shape : Place::offsets;
    offsets_ = 0;
    return true;
  }
  bool end_array() override {
    if (place_ == Place::offsets && offsets_ != 2) refuse("other than two data offsets");
    place_ = Place::entry;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::entry) {
      if (!fields_[0] || !fields_[1] || !fields_[2]) refuse("no dtype, shape or data_offsets");
      header_.entries.push_back(std::move(entry_));
    }
    place_ = place_ == Place::root ? Place::after : Place::root;
    return true;
  }

  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception&) override {
    throw IoError("[safetensors] " + what_ + " is damaged: its header is no JSON at byte " + std::to_string(at) +
                  ". Use another copy of the file.");
  }

 private:
  enum class Place { before, root, metadata, entry, shape, offsets, after };

  [[noreturn]] void refuse(const std::string& found) const {
    throw IoError("[safetensors] " + what_ + " is damaged: its header has " + found +
                  (tensor_.empty() ? "" : " at \"" + tensor_ + "\"") + ". Use another copy of the file.");
  }

  DType dtype_named(const std::string& name) const {
    for (int i = 0; i < kRealDTypeCount; ++i)
      if (name == kNames[static_cast<std::size_t>(i)]) return static_cast<DType>(i);
    throw IoError("[safetensors] " + what_ + ": tensor \"" + tensor_ + "\" has the type " + name +
                  ", which is not one of F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL. Convert it first.");
  }

  const std::string& what_;
  Header header_;
  Place place_ = Place::before;
  TensorEntry entry_;
  std::array<bool, 3> fields_{};  // dtype, shape, data_offsets
  int offsets_ = 0;
  std::string key_, tensor_;
  std::set<std::string> names_;
};

}  // namespace

Header parse_header(std::string_view text, const std::string& what) {
  HeaderReader reader(what);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

std::string write_header(const Header& header) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) root["__metadata__"] = header.metadata;
  for (const auto& e : header.entries) {
    if (is_complex(e.dtype)) {
      throw DTypeError("[safetensors] tensor \"" + e.name + "\" is " + std::string(name_of(e.dtype)) +
                       ", which the format does not have here. Store view_as_real(x), and read it with "
                       "view_as_complex.");
    }
    root[e.name] = {{"dtype", kNames[static_cast<std::size_t>(e.dtype)]},
                    {"shape", std::vector<int64_t>(e.sizes.begin(), e.sizes.end())},
                    {"data_offsets", {e.begin, e.end}}};
  }
  return root.dump();
}

}  // namespace levin::interop
