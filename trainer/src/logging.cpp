#include "src/logging.h"

#include <spdlog/spdlog.h>

namespace levin::logging {

void write(Level level, const std::string& text) {
  const auto as_spdlog = level == Level::debug  ? spdlog::level::debug
                         : level == Level::info ? spdlog::level::info
                                                : spdlog::level::warn;
  spdlog::log(as_spdlog, spdlog::string_view_t(text));
}

void only_errors() { spdlog::set_level(spdlog::level::err); }

}  // namespace levin::logging
