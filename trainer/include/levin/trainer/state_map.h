#pragma once
// Core's: data loaders hand out such values as well.

#include <levin/core/state_map.h>
