#include "kernels/cuda/vendor/library.h"

#include <levin/core/error.h>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

namespace levin::kernels::cuda {

SharedLibrary::SharedLibrary(const LibraryNames& names) : names_(names) {
  const char* path = std::getenv(names.variable);
  const bool given = path && *path;
  std::vector<std::string> reasons;
  for (const char* file : given ? std::vector<const char*>{path} : names.files) {
    file_ = file;
    handle_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (handle_) return;
    reasons.emplace_back(dlerror());
  }
  if (given) {
    throw DeviceError(
        fmt::format("[cuda] {} cannot be opened: {} is \"{}\", and the loader says: {}. Set it to the "
                    "library's path, or unset it to search LD_LIBRARY_PATH.",
                    names.title, names.variable, path, reasons[0]));
  }
  throw DeviceError(
      fmt::format("[cuda] {} cannot be opened: of {} the loader says: {}. Set {} to its path, or add its "
                  "folder to LD_LIBRARY_PATH.",
                  names.title, fmt::join(names.files, ", "), fmt::join(reasons, "; "), names.variable));
}

SharedLibrary::~SharedLibrary() {
  if (handle_ && closes_) dlclose(handle_);
}

void* SharedLibrary::address_of(const char* symbol) const {
  if (void* address = dlsym(handle_, symbol)) return address;
  throw DeviceError(
      fmt::format("[cuda] {} was opened from {}, but has no function {}. Set {} to the path of another "
                  "version.",
                  names_.title, file_, symbol, names_.variable));
}

}  // namespace levin::kernels::cuda
