#pragma once
// One process, several devices: every call scatters the batch, copies the parameters to the devices, computes there
// side by side and gathers the outputs. PyTorch's torch.nn.DataParallel; DistributedDataParallel moves fewer bytes.

#include <levin/core/owned_ptr.h>
#include <levin/nn/module.h>

namespace levin::distributed {

/// Bytes that went from one device to another; replicas on one device share its memory, so nothing moves there.
struct DataParallelBytes {
  int64_t parameters = 0;           ///< values and buffers, to the replicas
  int64_t inputs = 0;               ///< parts of the batch, to the replicas
  int64_t outputs = 0;              ///< to the first device
  int64_t output_gradients = 0;     ///< to the replicas
  int64_t parameter_gradients = 0;  ///< to the first device
  int64_t input_gradients = 0;      ///< to where the batch was
};

/// Wraps a module, which may be a part of a larger one:
///
///   net.to(cuda(0));
///   DataParallel parallel(net, {cuda(0), cuda(1)});  // or {kCpu, kCpu}: replicas on threads
///   cross_entropy(parallel(x), y).backward();        // gradients as of net(x), summed on the first device
///   optimizer.step();                                // on net's own parameters
///
/// The module lies on the first device and is itself the first replica: its buffers are the ones that are kept, its
/// hooks see the first part of the batch, those of submodules too. The other replicas are built as nn::clone does, get
/// parameters, buffers, training flags and requires_grad anew at each call, and run one a thread, each with its share
/// of the process's threads. Random numbers differ between replicas and are the same from run to run. Statistics of
/// batch normalisation are those of each replica's part.
///
/// One call at a time. With one device, or a batch of one part, the module itself is called.
class DataParallel {
 public:
  /// Throws ValueError without devices, DeviceError for one that is not there, and what nn::clone throws: a module
  /// whose constructor takes arguments, and which was not made by `add`, is given them again at the end.
  template <std::derived_from<nn::Module> M, class... Args>
  DataParallel(M& module, std::vector<Device> devices, const Args&... args)
      : DataParallel(static_cast<nn::Module&>(module), std::move(devices), Copies([&module, &args...] {
                       if constexpr (sizeof...(Args) == 0) {
                         if (typeid(module) != typeid(M)) return copy_of(module);
                       }
                       return std::unique_ptr<nn::Module>(new M(nn::clone(module, args...)));
                     })) {}
  DataParallel(nn::Module& module, std::vector<Device> devices);
  /// For modules that cannot be built again: the module is every replica, one after the other on the calling thread,
  /// and while it is, the replica's parameters and buffers stand in the places of its own. Devices that work on their
  /// own still overlap. What a replica's forward leaves in other members, the next one finds; hooks see every part.
  static DataParallel in_turns(nn::Module& module, std::vector<Device> devices);
  ~DataParallel();
  DataParallel(DataParallel&&) noexcept;
  DataParallel& operator=(DataParallel&&) = delete;

  /// x (B, ...), anywhere, is cut along its first dimension into parts of ceil(B / devices), the last one smaller; the
  /// outputs are joined along theirs, on the first device. Outputs of no dimension become one (parts). Throws
  /// DeviceError where the module does not lie on the first device, and what the module throws: of several replicas the
  /// first one's.
  Tensor operator()(const Tensor& x);

  /// The same for modules with other arguments and results: `forward` is called for every replica, at the same time,
  /// with its parts of all inputs, which have one first dimension.
  using ReplicaForward = std::function<std::vector<Tensor>(nn::Module& replica, const std::vector<Tensor>& parts)>;
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const ReplicaForward& forward);
  /// The same for a `forward` that is told which part it has.
  using NumberedForward =
      std::function<std::vector<Tensor>(std::size_t number, nn::Module& replica, const std::vector<Tensor>& parts)>;
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const NumberedForward& forward);

  nn::Module& module() const;
  const std::vector<Device>& devices() const;
  /// What has moved between devices so far, in calls and in their backward.
  DataParallelBytes bytes() const;

  /// How many of `batch` samples each part has: (61, 4) gives 16, 16, 16, 13; (5, 4) gives 2, 2, 1.
  static std::vector<int64_t> part_sizes(int64_t batch, std::size_t devices);

 private:
  using Copies = std::function<std::unique_ptr<nn::Module>()>;
  DataParallel(nn::Module& module, std::vector<Device> devices, const Copies& another);
  static std::unique_ptr<nn::Module> copy_of(const nn::Module& module);

  struct Impl;
  OwnedPtr<Impl> impl_;
};

}  // namespace levin::distributed
