#pragma once
// Atomic functions with CUDA's names. They are atomic at every scope, because blocks may run on several host threads.

#include <levin/emulator/uninitialized.h>

#include <bit>
#include <cstdint>
#include <type_traits>

namespace levin::emulator {

template <int bytes>
struct BitsOf;
template <>
struct BitsOf<2> {
  using type = std::uint16_t;
};
template <>
struct BitsOf<4> {
  using type = std::uint32_t;
};
template <>
struct BitsOf<8> {
  using type = std::uint64_t;
};

/// Replaces *p by f(*p) atomically and returns the old value.
template <class T, class F>
T atomic_update(T* p, F f) {
  using Bits = typename BitsOf<sizeof(T)>::type;
  auto* memory = reinterpret_cast<Bits*>(p);
  Bits seen = __atomic_load_n(memory, __ATOMIC_RELAXED);
  for (;;) {
    const T old = std::bit_cast<T>(seen);
    const Bits wanted = std::bit_cast<Bits>(f(old));
    check_atomic_operand(&wanted, sizeof(Bits));
    if (__atomic_compare_exchange_n(memory, &seen, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return old;
  }
}

}  // namespace levin::emulator

template <class T>
inline T atomicAdd(T* p, std::type_identity_t<T> value) {
  return levin::emulator::atomic_update(p, [&](T old) { return static_cast<T>(old + value); });
}
template <class T>
inline T atomicSub(T* p, std::type_identity_t<T> value) {
  return levin::emulator::atomic_update(p, [&](T old) { return static_cast<T>(old - value); });
}
template <class T>
inline T atomicExch(T* p, std::type_identity_t<T> value) {
  return levin::emulator::atomic_update(p, [&](T) { return value; });
}
template <class T>
inline T atomicMin(T* p, std::type_identity_t<T> value) {
  return levin::emulator::atomic_update(p, [&](T old) { return value < old ? value : old; });
}
template <class T>
inline T atomicMax(T* p, std::type_identity_t<T> value) {
  return levin::emulator::atomic_update(p, [&](T old) { return old < value ? value : old; });
}
/// atomicInc counts up to `limit` and wraps to 0; atomicDec counts down and wraps to `limit`.
inline unsigned atomicInc(unsigned* p, unsigned limit) {
  return levin::emulator::atomic_update(p, [&](unsigned old) { return old >= limit ? 0u : old + 1; });
}
inline unsigned atomicDec(unsigned* p, unsigned limit) {
  return levin::emulator::atomic_update(p, [&](unsigned old) { return old == 0 || old > limit ? limit : old - 1; });
}
template <class T>
inline T atomicCAS(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return levin::emulator::atomic_update(p, [&](T old) { return old == expected ? value : old; });
}
template <class T>
inline T atomicAnd(T* p, std::type_identity_t<T> value) {
  return levin::emulator::atomic_update(p, [&](T old) { return static_cast<T>(old & value); });
}
template <class T>
inline T atomicOr(T* p, std::type_identity_t<T> value) {
  return levin::emulator::atomic_update(p, [&](T old) { return static_cast<T>(old | value); });
}
template <class T>
inline T atomicXor(T* p, std::type_identity_t<T> value) {
  return levin::emulator::atomic_update(p, [&](T old) { return static_cast<T>(old ^ value); });
}
