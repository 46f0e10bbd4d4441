#pragma once
// A network whose layers are divided into stages, one per rank.

#include <levin/distributed/process_group.h>
#include <levin/nn/container.h>

#include <map>
#include <unordered_map>

namespace levin {

/// The last stage belongs to rank 0. A rank keeps the parameters of its own stage; those of the others keep their
/// shapes with NaN as values and use almost no memory. Everything outside the divided network belongs to rank 0 and
/// exists on all ranks.
class PipelineModule {
 public:
  /// `layers`: number of layers per stage. Throws UsageError for a parameter shared by two stages, or by a stage and a
  /// module outside of them.
  PipelineModule(nn::Module& module, nn::Sequential& cut, const std::vector<std::int64_t>& layers,
                 std::shared_ptr<distributed::ProcessGroup> group);

  nn::Module& module() const { return *module_; }
  nn::Sequential& cut() const { return *cut_; }
  const std::string& name() const { return name_; }  ///< name of the divided network
  int count() const { return group_->size(); }
  int own() const { return count() - 1 - group_->rank(); }  ///< this rank's stage
  bool is_first() const { return own() == 0; }
  bool is_last() const { return own() == count() - 1; }
  /// Runs this rank's layers. Throws UsageError if the last layer of the network returns several tensors.
  std::vector<Tensor> forward(const std::vector<Tensor>& inputs) const;

  /// Returns the rank that computes with a tensor of the module.
  int owner(const Tensor& parameter) const;
  /// The same by the tensor's name in the module's state dict.
  int owner(const std::string& name) const;
  /// Parameters and buffers that belong to no stage.
  const std::vector<Tensor>& other_parameters() const { return other_parameters_; }
  const std::vector<Tensor>& other_buffers() const { return other_buffers_; }

  void drop_others();  ///< frees other ranks' parameters
  void allocate();     ///< allocates them again, uninitialized
  void collect_all();  ///< gathers all parameters and buffers on all ranks
  /// The module's weights that this rank computes with.
  StateDict own_weights() const;

 private:
  void add_layer(const std::string& path, nn::Module& layer, int rank);
  void add_others();

  nn::Module* module_;
  nn::Sequential* cut_;
  std::shared_ptr<distributed::ProcessGroup> group_;
  std::string name_;
  std::size_t begin_ = 0, end_ = 0;                    // this rank's layers
  std::map<std::string, int> owner_of_layer_;          // by path
  std::unordered_map<const TensorImpl*, int> owners_;  // tensors that belong to stages
  std::vector<Parameter> parameters_;                  // of all stages, without duplicates
  std::vector<Tensor> buffers_;
  std::vector<Tensor> other_parameters_, other_buffers_;
};

/// Parses "2,2"; throws UsageError.
std::vector<std::int64_t> layers_of_stages(const std::string& balance);
/// Returns the layers per stage: as in `balance`, or balanced by parameters. Throws UsageError if there are fewer
/// layers than stages, or if `balance` has the wrong count or sum.
std::vector<std::int64_t> cut_into_stages(const nn::Sequential& cut, int stages, const std::string& balance);

}  // namespace levin
