#pragma once
// Data parallelism in one process: every call scatters the batch, copies the parameters to the devices, computes on
// them in parallel and gathers the outputs, as torch.nn.DataParallel does. DistributedDataParallel moves fewer bytes.

#include <levin/core/owned_ptr.h>
#include <levin/nn/module.h>

namespace levin::distributed {

/// Bytes copied from one device to another. Replicas on one device share its memory, so nothing is copied there.
struct DataParallelBytes {
  int64_t parameters = 0;           ///< values and buffers, to the replicas
  int64_t inputs = 0;               ///< parts of the batch, to the replicas
  int64_t outputs = 0;              ///< to the first device
  int64_t output_gradients = 0;     ///< to the replicas
  int64_t parameter_gradients = 0;  ///< to the first device
  int64_t input_gradients = 0;      ///< to the device of the batch
};

/// Wraps a module, which may be a submodule of a larger one:
///
///   net.to(cuda(0));
///   DataParallel parallel(net, {cuda(0), cuda(1)});  // or {kCpu, kCpu}: replicas on threads
///   cross_entropy(parallel(x), y).backward();        // gradients as of net(x), summed on the first device
///   optimizer.step();                                // on net's own parameters
///
/// The module lies on the first device and is itself the first replica: its buffers are the ones that are kept, and its
/// hooks and those of its submodules see the first part of the batch. The other replicas are built as by nn::clone.
/// They get the current parameters, buffers, training flags and requires_grad at each call, and each runs on its own
/// thread with its share of the process's threads. Random numbers differ between replicas and are reproducible from run
/// to run. Batch normalisation uses the statistics of each replica's part.
///
/// Calls must not overlap. With one device, or a batch of one part, the module itself is called.
class DataParallel {
 public:
  /// Throws ValueError without devices, DeviceError for a device that does not exist, and what nn::clone throws. A
  /// module whose constructor takes arguments, and which was not made by `add`, is given them again as the last
  /// arguments.
  template <std::derived_from<nn::Module> M, class... Args>
  DataParallel(M& module, std::vector<Device> devices, const Args&... args)
      : DataParallel(static_cast<nn::Module&>(module), std::move(devices), Copies([&module, &args...] {
                       if constexpr (sizeof...(Args) == 0) {
                         if (typeid(module) != typeid(M)) return copy_of(module);
                       }
                       return std::unique_ptr<nn::Module>(new M(nn::clone(module, args...)));
                     })) {}
  /// As above, for a module whose class is not known at compile time.
  DataParallel(nn::Module& module, std::vector<Device> devices);
  /// For modules that cannot be cloned: the module serves as every replica in turn, on the calling thread, with the
  /// replica's parameters and buffers in place of its own. Devices that run asynchronously still overlap. Other members
  /// that a replica's forward changes are seen by the next replica; hooks see every part.
  static DataParallel in_turns(nn::Module& module, std::vector<Device> devices);
  ~DataParallel();
  DataParallel(DataParallel&&) noexcept;
  DataParallel& operator=(DataParallel&&) = delete;

  /// Splits x (B, ...), on any device, along its first dimension into parts of ceil(B / devices) rows, the last one
  /// smaller, and concatenates the outputs along theirs on the first device. Scalar outputs become one tensor (parts).
  /// Throws DeviceError where the module is not on the first device, and the error of the first replica that failed.
  Tensor operator()(const Tensor& x);

  /// As operator(), for modules with other arguments and results: `forward` is called concurrently for every replica,
  /// with its parts of all inputs, which have the same first dimension.
  using ReplicaForward = std::function<std::vector<Tensor>(nn::Module& replica, const std::vector<Tensor>& parts)>;
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const ReplicaForward& forward);
  /// As above, for a `forward` that takes the index of its part.
  using NumberedForward =
      std::function<std::vector<Tensor>(std::size_t number, nn::Module& replica, const std::vector<Tensor>& parts)>;
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const NumberedForward& forward);

  /// The wrapped module, and the devices of its replicas.
  nn::Module& module() const;
  const std::vector<Device>& devices() const;
  /// Bytes copied between devices so far, in calls and in their backward.
  DataParallelBytes bytes() const;

  /// Number of samples of `batch` in each part: (61, 4) gives 16, 16, 16, 13; (5, 4) gives 2, 2, 1.
  static std::vector<int64_t> part_sizes(int64_t batch, std::size_t devices);

 private:
  using Copies = std::function<std::unique_ptr<nn::Module>()>;
  DataParallel(nn::Module& module, std::vector<Device> devices, const Copies& another);
  static std::unique_ptr<nn::Module> copy_of(const nn::Module& module);

  struct Impl;
  OwnedPtr<Impl> impl_;
};

}  // namespace levin::distributed
