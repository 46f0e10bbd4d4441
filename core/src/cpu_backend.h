#pragma once
// The device that every build has.

#include <levin/core/device.h>

namespace levin {

DeviceBackend& cpu_backend();

}  // namespace levin
