// Stands in for Gloo's connections in a static build. Ranks of one machine communicate by shared memory there.

#include <fmt/format.h>

#include "src/transports/gloo_transport.h"

namespace levin::distributed {

struct GlooTransport::Impl {};

GlooTransport::GlooTransport(Store&, const std::string&, int rank, int size, Duration) {
  throw ValueError(
      fmt::format("[make_process_group] rank {} of {} would need Gloo's connections, which this build does not have "
                  "(LEVIN_STATIC=ON). Ranks of one machine do without them (transport auto or shared); for several "
                  "machines build with -DLEVIN_STATIC=OFF.",
                  rank, size));
}

GlooTransport::~GlooTransport() = default;
std::unique_ptr<Channel> GlooTransport::channel(const std::string&, Clock::time_point, Traffic) { return nullptr; }
void GlooTransport::end(const RankEvent&) {}
std::optional<RankEvent> GlooTransport::ended() const { return std::nullopt; }

}  // namespace levin::distributed
