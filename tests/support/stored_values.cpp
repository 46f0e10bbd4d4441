#include "support/stored_values.h"

#include "support/paths.h"

#include <levin/core/io.h>

#include <fmt/format.h>

#include <sstream>

namespace levin::test {

namespace {

DType parse_dtype(const std::string& name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (name == name_of(static_cast<DType>(i))) return static_cast<DType>(i);
  throw IoError("[stored values] there is no type " + name + ".");
}

Shape parse_shape(const std::string& text) {
  Shape sizes;
  if (text == "-") return sizes;
  std::istringstream in(text);
  for (std::string size; std::getline(in, size, ',');) sizes.push_back(std::stoll(size));
  return sizes;
}

}  // namespace

StoredValues read_stored_values(const std::string& file) {
  StoredValues result;
  std::istringstream lines(io::read_text(source_dir() / "tests/pytorch" / file));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    std::string name, dtype, shape, value;
    in >> name >> dtype >> shape;
    const DType type = parse_dtype(dtype);
    const Shape sizes = parse_shape(shape);
    std::vector<double> values;
    while (in >> value) values.push_back(std::stod(value));
    if (static_cast<int64_t>(values.size()) != sizes.numel())
      throw IoError(fmt::format("[stored values] {}: {} has {} values for shape {}.", file, name, values.size(),
                                to_string(sizes)));
    result[name] = from_data(values, sizes, {.dtype = type});
  }
  return result;
}

std::string stored_line(const Tensor& t) {
  std::string text =
      fmt::format("{} {}", name_of(t.dtype()), t.dim() == 0 ? "-" : fmt::format("{}", fmt::join(t.sizes(), ",")));
  for (const double v : t.to_vector<double>()) text += fmt::format(" {:.17g}", v);
  return text;
}

Tensor formula(int64_t n, int64_t salt) {
  std::vector<float> values;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(n); ++i) {
    std::uint64_t h = (i * 2654435761u + static_cast<std::uint64_t>(salt) * 40503u) % 4294967296u;
    h = ((h ^ (h >> 15)) * 2246822519u) % 4294967296u;
    values.push_back(static_cast<float>(static_cast<int64_t>(h >> 16) - 32768) / 32768.0f);
  }
  return from_data(values, {n});
}

}  // namespace levin::test
