// Bilinear sampling of images: one thread an element, next to those of neighbouring points.
#include "kernels/cuda/base/launch.h"
#include "kernels/src/bilinear.h"

#include <levin/kernels/indexing.h>

namespace levin::kernels::cuda {

namespace {

constexpr int kBilinearThreads = 256;

template <class T>
struct Images {
  const T *x, *row, *column;
  T* out;
  std::int64_t elements, channels, h, w, points;
};

template <class T>
__global__ void sample_elements(Images<T> a) {
  using C = ComputeType<T>;
  for (std::int64_t i = global_thread(); i < a.elements; i += grid_threads()) {
    const std::int64_t plane = i / a.points, at = plane / a.channels * a.points + i % a.points;
    const sampling::Corners<C> corners(convert<C>(a.row[at]), convert<C>(a.column[at]), a.h, a.w);
    const T* const image = a.x + plane * a.h * a.w;
    a.out[i] = convert<T>(corners.value([image](std::int64_t place) { return convert<C>(image[place]); }));
  }
}

}  // namespace

void bilinear(const BilinearArgs& a, Stream& stream) {
  const std::int64_t elements = a.out.numel();
  if (elements == 0) return;
  dispatch_floating(a.out.dtype, "bilinear", [&]<class T>() {
    using D = DeviceType<T>;
    const auto in = [](const TensorView& v) { return reinterpret_cast<const D*>(v.data<T>()); };
    launch(sample_elements<D>,
           {.grid = blocks_for(elements, kBilinearThreads), .block = kBilinearThreads, .stream = stream},
           Images<D>{in(a.x), in(a.row), in(a.column), reinterpret_cast<D*>(a.out.data<T>()), elements, a.x.sizes[1],
                     a.x.sizes[2], a.x.sizes[3], a.row.sizes[1]});
  });
}

}  // namespace levin::kernels::cuda
