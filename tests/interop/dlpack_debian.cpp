// The layout that Debian's libdlpack-dev declares.
#include <dlpack/dlpack.h>
#include <levin/interop/dlpack.h>
#include <levin/interop/dlpack_abi.h>  // adds the versioned tensor to a header of DLPack 0

#include "dlpack_layout.h"

std::vector<std::size_t> layout_of_debian() { return dlpack_layout(); }
std::size_t versioned_size_beside_debian() { return sizeof(DLManagedTensorVersioned); }
