#pragma once
// The copy of the CPU, for kernels of which it is a part. It is called past the table, so observers don't see it.

#include <levin/kernels/copy.h>

namespace levin::kernels::cpu {

void copy(const CopyArgs& a, Stream& stream);

}  // namespace levin::kernels::cpu
