// Another device than the CPU: tensors of a file go there, and DLPack refuses it.
#include <levin/core/allocator.h>
#include <levin/interop/dlpack.h>
#include <levin/interop/torch_file.h>

#include <doctest/doctest.h>

#include <cstring>

#include "support/paths.h"
#include "support/sentences.h"

using namespace levin;
using namespace levin::test;

namespace {

/// A device whose memory is the host's.
class OtherDevice final : public DeviceBackend {
 public:
  std::string name() const override { return "other"; }
  int device_count() const override { return 1; }
  void* allocate(std::size_t bytes, Stream&) override { return cpu_allocator::allocate(bytes); }
  void free(void* p, std::size_t bytes, int) noexcept override { cpu_allocator::free(p, bytes); }
  void copy(void* to, Device, const void* from, Device, std::size_t bytes, Stream&) override {
    std::memcpy(to, from, bytes);
  }
  void fill_bytes(void* p, int value, std::size_t bytes, Stream&) override { std::memset(p, value, bytes); }
  Stream current_stream(int) override { return Stream({DeviceType::custom0, 0}); }
  void synchronize(int) override {}
  MemoryStats memory_stats(int) const override { return {}; }
  void empty_cache(int) override {}
  std::string properties(int) const override { return "memory of the host"; }
};

}  // namespace

TEST_CASE("tensors of a file of torch.save go to map_location, where they share memory again") {
  static OtherDevice other;
  const Device device{DeviceType::custom0, 0};
  register_device(device.type, other);
  for (const bool mmap : {false, true}) {
    const StateDict views = interop::load_torch(source_dir() / "tests/interop/files/views.pt",
                                                {.mmap = mmap, .map_location = device})
                                .state_dict();
    REQUIRE(views.size() == 10);
    for (const auto& entry : views) CHECK(entry.second.device() == device);
    CHECK(views.at("base").shares_storage(views.at("row")));
    CHECK(views.at("row").storage_offset() == 12);
    CHECK(views.at("base").cpu().to_vector<float>()[23] == 23.f);
  }
  check_sentences({{"[to_dlpack] DLPack has no name for the device custom0:0. Share x.cpu().",
                    [&] { interop::to_dlpack(empty({2}, {.device = device})); }}});
}
