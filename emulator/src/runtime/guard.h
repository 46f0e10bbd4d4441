#pragma once
// What happens when somebody touches device memory that is closed, or a kernel an address that is none.

#include <levin/emulator/runtime_types.h>

#include <string>

namespace levin::emulator {

/// Makes the handler the process's for SIGSEGV, unless it is; the former one is called after it.
void install_guard();
/// Once after a kernel touched an address that it must not, cudaErrorIllegalAddress or cudaErrorMisalignedAddress;
/// cudaSuccess otherwise.
cudaError_t take_fault();
/// take_fault() is to return this.
void note_fault(cudaError_t error);

}  // namespace levin::emulator
