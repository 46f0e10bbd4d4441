// Runs a Python script in this process, which shares memory with NumPy and PyTorch by DLPack:
//   levin_client_dlpack LIBPYTHON SCRIPT
// The script finds the addresses of the functions below in the variable LEVIN. Python's library is opened when the
// program runs, so that building it needs no Python.
#include <levin/autograd/ops.h>
#include <levin/interop/dlpack.h>
#include <levin/interop/dlpack_abi.h>

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdio>
#include <map>

using namespace levin;

namespace {

thread_local std::string last_error;

template <class F>
auto guarded(F&& f) -> decltype(f()) {
  try {
    last_error.clear();
    return f();
  } catch (const Error& e) {
    last_error = e.what();
    return {};
  }
}

// Every function takes and returns handles on the heap, since Python knows no C++ types.
Tensor* handle(const Tensor& t) { return new Tensor(t); }

Tensor* make(int dtype, int64_t rows, int64_t columns) {  // (rows, columns): 0, 1, 2, ... and as bool whether odd
  return guarded([&] {
    const auto type = static_cast<DType>(dtype);
    const Tensor count = arange(rows * columns).view({rows, columns});
    return handle(type == kBool ? (count % 2).to(kBool) : count.to(type));
  });
}
Tensor* transposed(Tensor* t) { return handle(t->t()); }
Tensor* row(Tensor* t, int64_t i) { return handle((*t)[i]); }
Tensor* requires_grad(Tensor* t) { return handle(t->clone().requires_grad_()); }
void release(Tensor* t) { delete t; }
int64_t live() { return Storage::live_count(); }
const char* error() { return last_error.c_str(); }
double item(Tensor* t, int64_t i) {
  return guarded([&] {
    const Tensor element = t->flatten()[i];
    return t->is_complex() ? element.item_complex().real : element.item<double>();
  });
}
void fill(Tensor* t, double value) { t->fill_(value); }
int dtype(Tensor* t) { return static_cast<int>(t->dtype()); }
int64_t size(Tensor* t, int axis) { return axis < t->dim() ? t->size(axis) : -1; }
const void* address(Tensor* t) { return t->raw_data(); }

void* export_plain(Tensor* t) { return guarded([&] { return interop::to_dlpack(*t); }); }
void* export_versioned(Tensor* t, int read_only) {
  return guarded([&] { return interop::to_dlpack_versioned(*t, {.read_only = read_only != 0}); });
}
Tensor* import_plain(void* h) {
  return guarded([&] { return handle(interop::from_dlpack(static_cast<DLManagedTensor*>(h))); });
}
Tensor* import_versioned(void* h, int never_copy) {
  return guarded([&] {
    interop::FromDlpackOptions options;
    if (never_copy != 0) options.copy = false;
    return handle(interop::from_dlpack(static_cast<DLManagedTensorVersioned*>(h), options));
  });
}
void delete_plain(void* h) { static_cast<DLManagedTensor*>(h)->deleter(static_cast<DLManagedTensor*>(h)); }
void delete_versioned(void* h) {
  static_cast<DLManagedTensorVersioned*>(h)->deleter(static_cast<DLManagedTensorVersioned*>(h));
}

template <class F>
std::uintptr_t address_of(F* f) {
  return reinterpret_cast<std::uintptr_t>(f);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: levin_client_dlpack LIBPYTHON SCRIPT\n");
    return 2;
  }
  void* python = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (!python) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  const std::map<std::string, std::uintptr_t> functions = {
      {"make", address_of(make)}, {"transposed", address_of(transposed)}, {"row", address_of(row)},
      {"requires_grad", address_of(requires_grad)}, {"release", address_of(release)}, {"live", address_of(live)},
      {"error", address_of(error)}, {"item", address_of(item)}, {"fill", address_of(fill)},
      {"dtype", address_of(dtype)},
      {"size", address_of(size)}, {"address", address_of(address)}, {"export_plain", address_of(export_plain)},
      {"export_versioned", address_of(export_versioned)}, {"import_plain", address_of(import_plain)},
      {"import_versioned", address_of(import_versioned)}, {"delete_plain", address_of(delete_plain)},
      {"delete_versioned", address_of(delete_versioned)}};
  std::string table;
  for (const auto& [name, at] : functions) table += fmt::format("'{}': {}, ", name, at);
  const auto initialize = reinterpret_cast<void (*)()>(dlsym(python, "Py_Initialize"));
  const auto run = reinterpret_cast<int (*)(const char*)>(dlsym(python, "PyRun_SimpleString"));
  const auto finalize = reinterpret_cast<int (*)()>(dlsym(python, "Py_FinalizeEx"));
  initialize();
  const std::string script = fmt::format("LEVIN = {{{}}}\nexec(compile(open('{}').read(), '{}', 'exec'))\n", table,
                                         argv[2], argv[2]);
  const int status = run(script.c_str());
  finalize();
  return status == 0 ? 0 : 1;
}
