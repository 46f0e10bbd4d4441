#pragma once
// Replaces the toolkit's header of this name.

#include <levin/emulator/bfloat16.h>
#include <levin/emulator/float16_math.h>
