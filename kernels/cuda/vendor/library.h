#pragma once
// Libraries of others that are opened while the program runs, so that it neither needs them to start nor to link.

#include <string>
#include <vector>

namespace levin::kernels::cuda {

/// Names of a library for messages and for the search.
struct LibraryNames {
  const char* title;               ///< for people: cuBLAS
  const char* variable;            ///< of the environment: a path, tried instead of the files
  std::vector<const char*> files;  ///< in the order in which the loader looks for them
};

/// An open library, closed with the object unless keep() was called.
class SharedLibrary {
 public:
  /// Throws DeviceError where no file can be opened: which were tried, the loader's words, the remedy.
  explicit SharedLibrary(const LibraryNames& names);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  /// Sets the pointer to the function; throws DeviceError where the library has none of the name.
  template <class F>
  void find(F*& function, const char* symbol) const {
    function = reinterpret_cast<F*>(address_of(symbol));
  }
  /// Never closes it: handles and caches inside of it live as long as the process.
  void keep() { closes_ = false; }

 private:
  void* address_of(const char* symbol) const;

  const LibraryNames& names_;
  std::string file_;
  void* handle_ = nullptr;
  bool closes_ = true;
};

}  // namespace levin::kernels::cuda
