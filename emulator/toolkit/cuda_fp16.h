#pragma once
// Replaces the toolkit's header of this name.

#include <levin/emulator/float16_math.h>
#include <levin/emulator/half.h>
