#pragma once
// An operation is one explicit typed table with a column per device type, which is filled where the operation is
// defined.
//
//   extern constinit Kernel<void(const SoftmaxArgs&, Stream&)> softmax;      // contract header
//   constinit Kernel<void(const SoftmaxArgs&, Stream&)> softmax{"softmax", cpu::softmax};   // one source
//   softmax(args, stream);                                                  // the stream's device chooses the column
//
// A table also states which element types a column takes if these are fewer than the contract names. Operations query
// it, and go through float32 if a column does not take 16-bit floats.

#include <levin/core/capture/host_capture.h>
#include <levin/core/tensor_view.h>
#include <levin/kernels/work.h>

#include <atomic>
#include <cstring>
#include <initializer_list>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <typeinfo>

namespace levin::kernels {

/// A set of element types.
class DTypes {
 public:
  /// Holds these types.
  constexpr DTypes(std::initializer_list<DType> types) {
    for (const DType t : types) bits_ |= 1u << static_cast<int>(t);
  }
  /// True if the set holds t.
  constexpr bool has(DType t) const { return (bits_ >> static_cast<int>(t) & 1u) != 0; }
  /// Returns the set less the others.
  constexpr DTypes without(const DTypes& others) const { return DTypes(bits_ & ~others.bits_); }
  /// Returns the set of all types.
  static constexpr DTypes every() { return DTypes(~0u); }

 private:
  constexpr explicit DTypes(std::uint32_t bits) : bits_(bits) {}
  std::uint32_t bits_ = 0;
};

/// For columns that compute only in float32 and float64.
inline constexpr DTypes kNot16BitFloats = DTypes::every().without({DType::f16, DType::bf16});

/// Observes every kernel call, from any thread: the profiler measures with it, tests learn which tables were exercised.
class KernelObserver {
 public:
  virtual ~KernelObserver() = default;
  /// Called before the column's function runs.
  virtual void called(const char* kernel, Device device) = 0;
  /// Called after it, unless it threw; on a device its work may still be queued. `args` is of `type`; `work` is zero
  /// for a table defined out of tree whose arguments do not state it.
  virtual void returned(const char* /*kernel*/, const std::type_info& /*type*/, const void* /*args*/,
                        const Work& /*work*/, const Stream&) {}
};

/// Sets the process's observer, null for none; returns the previous one. The observer must outlive its last call.
KernelObserver* set_observer(KernelObserver* observer);

namespace detail {
extern std::atomic<KernelObserver*> observer;
[[noreturn]] void missing(const char* kernel, Device device);
}  // namespace detail

/// Copies the list that an argument refers to into the memory of a capture.
template <class T>
void own_list(std::span<const T>& list) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (list.empty()) return;
  void* const memory = levin::detail::host_capture->argument_memory(list.size_bytes(), alignof(T));
  list = {static_cast<const T*>(std::memcpy(memory, list.data(), list.size_bytes())), list.size()};
}

template <class Signature>
class Kernel;

/// The table of an operation: one function for each type of device, or none.
template <class Args>
class Kernel<void(const Args&, Stream&)> {
 public:
  using Function = void (*)(const Args&, Stream&);  ///< queues the work on the stream, whose device holds all tensors

  /// The cuda column takes every type of the contract; the cpu column and the free columns take those in cpu_types.
  constexpr Kernel(const char* name, Function cpu, Function cuda = nullptr, DTypes cpu_types = DTypes::every())
      : name_(name), columns_{cpu, cuda, nullptr, nullptr}, types_{cpu_types, DTypes::every(), cpu_types, cpu_types} {}

  /// Runs the column of the stream's device; throws DeviceError if it is empty.
  void operator()(const Args& args, Stream& stream) const {
    const Function f = columns_[static_cast<int>(stream.device().type)];
    if (!f) detail::missing(name_, stream.device());
    if (levin::detail::host_capture && stream.device().type == DeviceType::cpu) [[unlikely]] return capture(f, args);
    KernelObserver* const o = detail::observer.load(std::memory_order_acquire);
    if (o) o->called(name_, stream.device());
    f(args, stream);
    if (o) o->returned(name_, typeid(Args), &args, work_of(args), stream);
  }

  /// Fills a column, for accelerators built out of tree; it takes the same types as the cpu column.
  void set(DeviceType type, Function f) { columns_[static_cast<int>(type)] = f; }
  /// Fills a column that takes `types`.
  void set(DeviceType type, Function f, const DTypes& types) {
    set(type, f);
    types_[static_cast<int>(type)] = types;
  }
  /// True if the column has a function.
  bool has(DeviceType type) const { return columns_[static_cast<int>(type)] != nullptr; }
  /// True if the column's function takes tensors of type t, which must be a type that the contract names.
  bool takes(DeviceType type, DType t) const { return types_[static_cast<int>(type)].has(t); }
  /// Returns the operation's name, with which messages begin.
  const char* name() const { return name_; }

 private:
  struct Captured {
    const Kernel* kernel;
    Function function;
    Args args;
  };

  /// Keeps the call instead of running it. Arguments that refer to lists of the caller copy them in own_lists().
  void capture(Function f, const Args& args) const {
    static_assert(std::is_trivially_copyable_v<Args>);
    levin::detail::HostCapture& to = *levin::detail::host_capture;
    auto* call = new (to.argument_memory(sizeof(Captured), alignof(Captured))) Captured{this, f, args};
    if constexpr (requires { call->args.own_lists(); }) call->args.own_lists();
    to.add({[](const void* data, Stream& stream) {
              const auto& c = *static_cast<const Captured*>(data);
              c.function(c.args, stream);
            },
            [](const void* data, Stream& stream) {
              const auto& c = *static_cast<const Captured*>(data);
              (*c.kernel)(c.args, stream);
            },
            call});
  }

  Work work_of(const Args& args) const {
    if constexpr (requires { args.work(name_); }) {
      return args.work(name_);
    } else {
      return {};
    }
  }

  const char* name_;
  Function columns_[kDeviceTypeCount];
  DTypes types_[kDeviceTypeCount];
};

}  // namespace levin::kernels

namespace levin::kernels::cpu {

/// Returns Highway's name for the instruction set that the CPU kernels use on this machine ("AVX3", "AVX2", "SSE4",
/// ...), or "AMX" if large products are computed by the processor's matrix unit. Results of two instruction sets may
/// differ by rounding. The environment variable LEVIN_CPU_CAPABILITY ("sse4", "avx2", "avx512" or "amx") forbids wider
/// ones; another value throws ValueError.
const char* simd_target();

}  // namespace levin::kernels::cpu
