#pragma once
// Third-party libraries opened at run time, so that a program needs them neither to link nor to start.

#include <string>
#include <vector>

namespace levin::kernels::cuda {

/// Names of a library, for messages and for the search.
struct LibraryNames {
  const char* title;               ///< for people, such as cuBLAS
  const char* variable;            ///< environment variable with a path that is tried instead of the files
  std::vector<const char*> files;  ///< file names in the order in which they are tried
};

/// An open library, closed with the object unless keep() was called.
class SharedLibrary {
 public:
  /// Throws DeviceError if no file can be opened, with the files tried, the loader's message and the remedy.
  explicit SharedLibrary(const LibraryNames& names);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  /// Sets the pointer to the function; throws DeviceError if the library has no function of that name.
  template <class F>
  void find(F*& function, const char* symbol) const {
    function = reinterpret_cast<F*>(address_of(symbol));
  }
  /// Keeps the library open: handles and caches inside of it live as long as the process.
  void keep() { closes_ = false; }

 private:
  void* address_of(const char* symbol) const;

  const LibraryNames& names_;
  std::string file_;
  void* handle_ = nullptr;
  bool closes_ = true;
};

}  // namespace levin::kernels::cuda
