#pragma once
// A transport with added latency, to simulate a slow network.

#include "src/transports/transport.h"

namespace levin::distributed {

/// Every message arrives at least `latency` after it was sent. There are no shared blocks.
std::unique_ptr<Transport> make_slow_transport(std::unique_ptr<Transport> inner, Milliseconds latency);

}  // namespace levin::distributed
