// Datasets of long token sequences, cut into blocks.

#include <levin/core/io/bytes.h>
#include <levin/core/io.h>
#include <levin/data/text.h>

#include "../datasets/check_index.h"

#include <fmt/format.h>

#include <limits>

namespace levin::data {

namespace {

void check_blocks(int64_t tokens, int64_t block, int64_t stride) {
  if (block >= 1 && stride >= 1 && tokens > block) return;
  throw ValueError(
      fmt::format("[token_blocks] {} tokens make no block of {} and its successor (stride {}). Use shorter blocks.",
                  tokens, block, stride));
}

int64_t bytes_of(TokenType type) { return type == TokenType::uint16 ? 2 : 4; }

template <class T>
void copy_tokens(std::span<const std::byte> from, int64_t begin, int64_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = io::little_endian<T>(from, static_cast<std::size_t>(begin + i) * sizeof(T));
}

}  // namespace

TokenBlockDataset::TokenBlockDataset(Tensor tokens, int64_t block_size, int64_t stride)
    : tokens_(std::move(tokens)), block_(block_size), stride_(stride == 0 ? block_size : stride) {
  if (tokens_.dtype() != kInt64 || tokens_.dim() != 1) {
    throw ShapeError(fmt::format("[token_blocks] tokens are int64 (N), not {} {}.", name_of(tokens_.dtype()),
                                 to_string(tokens_.sizes())));
  }
  check_blocks(tokens_.size(0), block_, stride_);
  if (!tokens_.is_contiguous()) tokens_ = tokens_.contiguous();
}

Sample TokenBlockDataset::get(int64_t index, Generator&) const {
  detail::check_index(index, size());
  const int64_t begin = tokens_.storage_offset() + index * stride_;
  return {alias(tokens_, {block_}, {1}, begin), alias(tokens_, {block_}, {1}, begin + 1)};
}

void write_tokens(const std::string& path, std::span<const int64_t> tokens, TokenType type) {
  const int64_t most = type == TokenType::uint16 ? std::numeric_limits<std::uint16_t>::max()
                                                 : int64_t{std::numeric_limits<std::uint32_t>::max()};
  std::string out;
  out.reserve(tokens.size() * static_cast<std::size_t>(bytes_of(type)));
  for (const int64_t token : tokens) {
    if (token < 0 || token > most)
      throw ValueError(fmt::format("[write_tokens] token {} does not fit: the type holds 0 to {}.{}", token, most,
                                   type == TokenType::uint16 ? " Use TokenType::uint32." : ""));
    if (type == TokenType::uint16)
      io::put_little_endian(out, static_cast<std::uint16_t>(token));
    else
      io::put_little_endian(out, static_cast<std::uint32_t>(token));
  }
  io::write_file(path, out);
}

TokenFileDataset::TokenFileDataset(const std::string& path, int64_t block_size, int64_t stride, TokenType type)
    : block_(block_size), stride_(stride == 0 ? block_size : stride), type_(type) {
  const io::FileBytes file = io::map_bytes(path);
  const auto bytes = static_cast<int64_t>(file.data.size());
  if (bytes % bytes_of(type) != 0)
    throw IoError(fmt::format("[token_file] {} has {} bytes, which do not divide into tokens of {} bytes.", path, bytes,
                              bytes_of(type)));
  bytes_ = file.data;
  keeper_ = file.keeper;
  tokens_ = bytes / bytes_of(type);
  check_blocks(tokens_, block_, stride_);
}

Sample TokenFileDataset::get(int64_t index, Generator&) const {
  detail::check_index(index, size());
  const Tensor both = empty({block_ + 1}, {.dtype = kInt64});
  auto* to = both.data<int64_t>();
  if (type_ == TokenType::uint16)
    copy_tokens<std::uint16_t>(bytes_, index * stride_, to, block_ + 1);
  else
    copy_tokens<std::uint32_t>(bytes_, index * stride_, to, block_ + 1);
  return {alias(both, {block_}, {1}, 0), alias(both, {block_}, {1}, 1)};
}

}  // namespace levin::data
