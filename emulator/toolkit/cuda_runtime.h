#pragma once
// Replaces the toolkit's header of this name.

#include <levin/emulator/builtins.h>
#include <levin/emulator/runtime_api.h>
