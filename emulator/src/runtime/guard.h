#pragma once
// What happens when somebody touches device memory that is closed, or a kernel an address that is none.

#include <string>

namespace levin::emulator {

/// Makes the handler the process's for SIGSEGV, unless it is; the former one is called after it.
void install_guard();
/// True once after a kernel touched an address that it must not.
bool take_illegal_access();

}  // namespace levin::emulator
