// levin::cuda in a build without CUDA. A CUDA build uses kernels/cuda/device/public/*.cpp instead.

#include <levin/core/error.h>
#include <levin/core/tensor.h>
#include <levin/kernels/cuda.h>
#include <levin/kernels/range.h>

#include "kernels/src/host_read.h"

namespace levin {

namespace {

constexpr const char* kAbsent =
    "[cuda] this build has no CUDA. Use the cpu, or build with -DLEVIN_CUDA=ON (or EMULATE, to run the kernels on the "
    "cpu).";

[[noreturn]] void absent() { throw DeviceError(kAbsent); }

levin::Stream no_stream() { absent(); }

}  // namespace

struct cuda::Graph::Impl {};

bool cuda::is_available() { return false; }
const char* cuda::flavour() { return "OFF"; }
int cuda::device_count() { return 0; }
std::string cuda::why_unavailable() { return kAbsent; }
int cuda::current_device() { absent(); }
void cuda::set_device(int) { absent(); }
void cuda::synchronize(int) { absent(); }
cuda::DeviceProperties cuda::get_device_properties(int) { absent(); }

void cuda::set_allow_tf32(bool) { absent(); }
bool cuda::allow_tf32() { return false; }
void cuda::set_preferred_blas_library(const std::string&) { absent(); }
std::string cuda::preferred_blas_library() { return "levin"; }
void cuda::set_preferred_conv_library(const std::string&) { absent(); }
std::string cuda::preferred_conv_library() { return "levin"; }

cuda::DeviceGuard::DeviceGuard(int) { absent(); }
cuda::DeviceGuard::~DeviceGuard() { static_cast<void>(former_); }

cuda::Stream::Stream(int) : stream_(no_stream()) {}
bool cuda::Stream::query() const { absent(); }
void cuda::Stream::synchronize() const { absent(); }
void cuda::Stream::record_event(Event&) const { absent(); }
void cuda::Stream::wait_event(const Event&) const { absent(); }
void cuda::Stream::wait_stream(const Stream&) const { absent(); }
cuda::Stream cuda::current_stream(int) { absent(); }
cuda::Stream cuda::default_stream(int) { absent(); }
void cuda::set_stream(const Stream&) { absent(); }

cuda::StreamGuard::StreamGuard(const Stream& stream) : device_(0), former_(stream) {}
cuda::StreamGuard::~StreamGuard() = default;

cuda::Event::Event(bool enable_timing) : timing_(enable_timing) { absent(); }
cuda::Event::~Event() = default;
cuda::Event::Event(Event&& other) noexcept : handle_(other.handle_), device_(other.device_), timing_(other.timing_) {}
cuda::Event& cuda::Event::operator=(Event&&) noexcept { return *this; }
void cuda::Event::record() { absent(); }
void cuda::Event::record(const Stream&) { absent(); }
void cuda::Event::wait() const { absent(); }
void cuda::Event::wait(const Stream&) const { absent(); }
bool cuda::Event::query() const { absent(); }
void cuda::Event::synchronize() const { absent(); }
double cuda::Event::elapsed_time(const Event&) const { absent(); }

Tensor cuda::pin_memory(const Tensor&) { absent(); }
bool cuda::is_pinned(const Tensor&) { return false; }

std::size_t cuda::memory_allocated(int) { absent(); }
std::size_t cuda::max_memory_allocated(int) { absent(); }
std::size_t cuda::memory_reserved(int) { absent(); }
std::size_t cuda::max_memory_reserved(int) { absent(); }
void cuda::reset_peak_memory_stats(int) { absent(); }
void cuda::empty_cache() {}
cuda::MemoryReport cuda::memory_stats(int) { absent(); }
std::string cuda::memory_summary(int) { absent(); }
void cuda::set_memory_cap(std::size_t, int) { absent(); }
void cuda::set_per_process_memory_fraction(double, int) { absent(); }
void cuda::fill_uninitialized_memory(bool) {}
void cuda::record_stream(const Tensor&, const Stream&) { absent(); }

cuda::MempoolId cuda::graph_pool_handle() { absent(); }
bool cuda::is_current_stream_capturing() { return false; }
cuda::Graph::Graph() { absent(); }
cuda::Graph::~Graph() = default;
void cuda::Graph::capture_begin(MempoolId) { absent(); }
void cuda::Graph::capture_end() { absent(); }
void cuda::Graph::capture(const std::function<void()>&, MempoolId) { absent(); }
void cuda::Graph::replay() { absent(); }
void cuda::Graph::reset() { absent(); }
cuda::MempoolId cuda::Graph::pool() const { absent(); }

void kernels::push_range(const char*) {}
void kernels::pop_range() {}

std::unique_ptr<HostRead::Pending> kernels::begin_host_read(const Tensor&, std::size_t) { return nullptr; }

}  // namespace levin
