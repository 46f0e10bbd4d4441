#include "single.h"

#include "strategies.h"

namespace levin {

std::unique_ptr<Strategy> make_single(Device device) { return std::make_unique<SingleDevice>(device); }

}  // namespace levin
