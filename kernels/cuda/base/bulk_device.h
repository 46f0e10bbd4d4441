#pragma once
// The copy engine and its barriers of ptx.h for nvcc. Include ptx.h instead.

namespace levin::kernels::cuda::ptx {

#if __CUDA_ARCH__ >= 900
#define LEVIN_PTX_IF_BULK(...) __VA_ARGS__
#else  // never reached: the launchers ask for compute capability 9
#define LEVIN_PTX_IF_BULK(...) __trap()
#endif

__device__ inline void barrier_init(std::uint64_t* b, int arrivals) {
  LEVIN_PTX_IF_BULK(
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(detail::shared_address(b)), "r"(arrivals)
                   : "memory"));
}
__device__ inline void barrier_init_fence() {
  LEVIN_PTX_IF_BULK(asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"));
}
__device__ inline void barrier_arrive(std::uint64_t* b) {
  LEVIN_PTX_IF_BULK(asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(detail::shared_address(b))
                                 : "memory"));
}
__device__ inline void barrier_arrive(std::uint64_t* b, int bytes) {
  LEVIN_PTX_IF_BULK(
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(detail::shared_address(b)), "r"(bytes)
                   : "memory"));
}
__device__ inline void barrier_wait(std::uint64_t* b, int parity) {
#if __CUDA_ARCH__ >= 900
  int ended;
  do {
    asm volatile(
        "{\n.reg .pred ended;\nmbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\nselp.b32 %0, 1, 0, ended;\n}"
        : "=r"(ended)
        : "r"(detail::shared_address(b)), "r"(parity)
        : "memory");
  } while (!ended);
#else
  __trap();
#endif
}

template <int Count, bool More>
__device__ inline void set_registers() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  if constexpr (More) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
  }
#endif
}

#define LEVIN_PTX_COPY_BOX(rank, coordinates, ...)                                            \
  asm volatile("cp.async.bulk.tensor." rank                                                   \
               ".shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, " coordinates \
               "], [%2];" ::"r"(detail::shared_address(shared)),                              \
               "l"(&map), "r"(detail::shared_address(b)), __VA_ARGS__                         \
               : "memory")
template <int Rank>
__device__ inline void copy_box(void* shared, const TensorMap& map, const int (&at)[5], std::uint64_t* b) {
  static_assert(Rank == 3 || Rank == 5);
  if constexpr (Rank == 3) {
    LEVIN_PTX_IF_BULK(LEVIN_PTX_COPY_BOX("3d", "{%3, %4, %5}", "r"(at[0]), "r"(at[1]), "r"(at[2])));
  } else {
    LEVIN_PTX_IF_BULK(
        LEVIN_PTX_COPY_BOX("5d", "{%3, %4, %5, %6, %7}", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])));
  }
}
#undef LEVIN_PTX_COPY_BOX
#undef LEVIN_PTX_IF_BULK

}  // namespace levin::kernels::cuda::ptx
