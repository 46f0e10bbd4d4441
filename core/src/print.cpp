// Printing of tensors by the rules of PyTorch's _tensor_str.py with its default options.

#include <levin/core/tensor.h>

#include "host_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

namespace levin {

namespace {

constexpr int64_t kThreshold = 1000, kEdge = 3, kLineWidth = 80;

/// The form of floating numbers that are printed with equal width.
struct NumberFormat {
  bool whole = true, scientific = false;
  std::size_t width = 1;

  std::string text(double v) const {
    if (scientific) return fmt::format("{:.4e}", v);
    if (!whole) return fmt::format("{:.4f}", v);
    return fmt::format("{:.0f}", v) + (std::isfinite(v) ? "." : "");
  }
};

/// Formats the elements of one tensor with equal width.
class Printer {
 public:
  explicit Printer(const Tensor& t) : tensor_(t), host_(t), summarize_(t.numel() > kThreshold) {
    if (t.is_floating() || t.is_complex()) {
      choose_format(0);
      if (t.is_complex()) choose_format(1);
      width_ = formats_[0].width + (t.is_complex() ? formats_[1].width + 1 : 0);
    } else {
      visit(0, 0, [&](int64_t offset) { width_ = std::max(width_, integer_text(offset).size()); });
    }
  }

  std::string text(int axis, int64_t offset, std::size_t indent) const {
    const Shape& sizes = tensor_.sizes();
    if (axis == sizes.size()) return element(offset);
    if (axis + 1 == sizes.size()) return vector_text(axis, offset, indent);
    std::vector<std::string> parts;
    for_each_shown(axis, [&](int64_t i) {
      parts.push_back(i < 0 ? "..." : text(axis + 1, offset + i * tensor_.strides()[axis], indent + 1));
    });
    const std::string lines(static_cast<std::size_t>(sizes.size() - axis - 1), '\n');
    return fmt::format("[{}]", fmt::join(parts, fmt::format(",{}{:{}}", lines, "", indent + 1)));
  }

 private:
  /// Calls f(i) for the printed indices of an axis, and f(-1) where the others are left out.
  template <class F>
  void for_each_shown(int axis, F&& f) const {
    const int64_t n = tensor_.sizes()[axis];
    const bool cut = summarize_ && n > 2 * kEdge;
    for (int64_t i = 0; i < n; ++i) {
      if (cut && i == kEdge) {
        f(int64_t{-1});
        i = n - kEdge;
      }
      f(i);
    }
  }

  /// Calls f with the offsets of all printed elements.
  template <class F>
  void visit(int axis, int64_t offset, F&& f) const {
    if (axis == tensor_.dim()) return f(offset);
    for_each_shown(axis, [&](int64_t i) {
      if (i >= 0) visit(axis + 1, offset + i * tensor_.strides()[axis], f);
    });
  }

  std::string vector_text(int axis, int64_t offset, std::size_t indent) const {
    const auto per_line = static_cast<std::size_t>(
        std::max<int64_t>(1, (kLineWidth - static_cast<int64_t>(indent)) / static_cast<int64_t>(width_ + 2)));
    std::string out = "[";
    std::size_t count = 0;
    for_each_shown(axis, [&](int64_t i) {
      if (count > 0) out += count % per_line == 0 ? ",\n" + std::string(indent + 1, ' ') : ", ";
      out += i < 0 ? " ..." : element(offset + i * tensor_.strides()[axis]);
      ++count;
    });
    return out + "]";
  }

  /// Returns the value of a floating element, or one part of a complex one.
  double floating(int64_t offset, int part) const {
    return dispatch_floating(real_type_of(tensor_.dtype()), "print", [&]<class T>() {
      const int64_t at = tensor_.is_complex() ? 2 * offset + part : offset;
      return static_cast<double>(static_cast<const T*>(host_.first())[at]);
    });
  }

  std::string integer_text(int64_t offset) const {
    return dispatch_all(tensor_.dtype(), "print", [&]<class T>() {
      const T v = static_cast<const T*>(host_.first())[offset];
      if constexpr (std::is_same_v<T, bool>) {
        return std::string(v ? "True" : "False");
      } else {
        return fmt::format("{}", static_cast<int64_t>(v));
      }
    });
  }

  /// As in PyTorch, only the real parts are padded.
  std::string complex_text(int64_t offset) const {
    const std::string imag = formats_[1].text(floating(offset, 1));
    return fmt::format("{:>{}}{}{}j", formats_[0].text(floating(offset, 0)), formats_[0].width,
                       imag.starts_with('-') ? "" : "+", imag);
  }

  std::string element(int64_t offset) const {
    if (tensor_.is_complex()) return complex_text(offset);
    return fmt::format("{:>{}}",
                       tensor_.is_floating() ? formats_[0].text(floating(offset, 0)) : integer_text(offset), width_);
  }

  void choose_format(int part) {
    NumberFormat& format = formats_[part];
    double lowest = INFINITY, highest = 0;
    const auto counts = [](double v) { return std::isfinite(v) && v != 0; };
    visit(0, 0, [&](int64_t offset) {
      const double v = floating(offset, part);
      if (!counts(v)) return;
      lowest = std::min(lowest, std::abs(v));
      highest = std::max(highest, std::abs(v));
      format.whole = format.whole && v == std::ceil(v);
    });
    if (highest == 0) return;
    format.scientific = highest / lowest > 1000.0 || highest > 1e8 || (!format.whole && lowest < 1e-4);
    visit(0, 0, [&](int64_t offset) {
      const double v = floating(offset, part);
      if (counts(v)) format.width = std::max(format.width, format.text(v).size());
    });
  }

  const Tensor& tensor_;
  detail::HostCopy host_;
  bool summarize_;
  NumberFormat formats_[2];  ///< of floating numbers, or of real and imaginary parts
  std::size_t width_ = 1;
};

std::vector<std::string> suffixes(const Tensor& t) {
  std::vector<std::string> list;
  if (t.device() != kCpu)
    list.push_back(fmt::format("device='{}:{}'", device_backend(t.device()).name(), t.device().index));
  const bool usual =
      t.dtype() == default_dtype() || (t.numel() > 0 && t.dtype() == complex_type_of(default_dtype()));
  if (t.numel() == 0) {
    if (t.dim() != 1) list.push_back("size=" + to_string(t.sizes()));
    if (!usual) list.push_back(fmt::format("dtype={}", name_of(t.dtype())));
  } else if (!usual && t.dtype() != DType::i64 && t.dtype() != DType::boolean) {
    list.push_back(fmt::format("dtype={}", name_of(t.dtype())));
  }
  if (t.impl()->autograd) {
    if (std::string d = t.impl()->autograd->describe(); !d.empty()) list.push_back(std::move(d));
  }
  return list;
}

}  // namespace

std::string to_string(const Tensor& t) {
  if (!t.defined()) return "tensor(undefined)";
  constexpr std::string_view prefix = "tensor(";
  const std::size_t indent = prefix.size();
  std::string out(prefix);
  out += t.numel() == 0 ? "[]" : Printer(t).text(0, 0, indent);
  const std::size_t newline = out.rfind('\n');
  std::size_t line = newline == std::string::npos ? out.size() + 2 : out.size() - newline + 1;
  for (const std::string& suffix : suffixes(t)) {
    if (line + suffix.size() + 2 > static_cast<std::size_t>(kLineWidth)) {
      out += ",\n" + std::string(indent, ' ') + suffix;
      line = indent + suffix.size();
    } else {
      out += ", " + suffix;
      line += suffix.size() + 2;
    }
  }
  return out + ")";
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) { return out << to_string(t); }
std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }
std::ostream& operator<<(std::ostream& out, DType type) { return out << name_of(type); }
std::ostream& operator<<(std::ostream& out, Device device) { return out << to_string(device); }

}  // namespace levin
