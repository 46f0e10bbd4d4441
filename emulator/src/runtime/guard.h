#pragma once
// Handles faults: an access to device memory that is closed, and a kernel's access to an invalid address.

#include <levin/emulator/runtime_types.h>

#include <string>

namespace levin::emulator {

/// Installs the process's SIGSEGV handler unless it is installed. It calls the former handler.
void install_guard();
/// Returns cudaErrorIllegalAddress or cudaErrorMisalignedAddress once after a kernel's illegal access, else
/// cudaSuccess.
cudaError_t take_fault();
/// Sets the error that take_fault() returns next.
void note_fault(cudaError_t error);

}  // namespace levin::emulator
