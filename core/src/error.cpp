#include <levin/core/error.h>

#include <fmt/format.h>

namespace levin {

const char* Error::what() const noexcept { return origin_ ? origin_->message.c_str() : std::runtime_error::what(); }

void Error::set_origin(const void* outermost, std::string path, std::string type) {
  const char* plain = std::runtime_error::what();
  std::string message = path.empty() ? plain : fmt::format("in {} ({}): {}", path, type, plain);
  origin_ = std::make_shared<const Origin>(Origin{outermost, std::move(path), std::move(type), std::move(message)});
}

}  // namespace levin
