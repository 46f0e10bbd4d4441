#pragma once
// A transport whose messages arrive later, as over a long or a busy network.

#include "src/transport.h"

namespace levin::distributed {

/// Every message arrives `latency` after it was sent, or later. There are no shared blocks.
std::unique_ptr<Transport> make_slow_transport(std::unique_ptr<Transport> inner, Milliseconds latency);

}  // namespace levin::distributed
