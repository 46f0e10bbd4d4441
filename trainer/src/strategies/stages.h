#pragma once
// A network whose layers are cut into stages, one a rank.

#include <levin/distributed/process_group.h>
#include <levin/nn/container.h>

#include <map>
#include <unordered_map>

namespace levin {

/// The last stage is rank 0's. A rank keeps the parameters of its own stage; those of the others have their shapes, NaN
/// as values, and next to no memory. What does not belong to the network cut is rank 0's, and on all ranks.
class Stages {
 public:
  /// `layers`: how many each stage has. Throws UsageError for a parameter that two stages have, or a stage and what is
  /// not cut.
  Stages(nn::Module& module, nn::Sequential& cut, const std::vector<std::int64_t>& layers,
         std::shared_ptr<distributed::ProcessGroup> group);

  nn::Module& module() const { return *module_; }
  nn::Sequential& cut() const { return *cut_; }
  const std::string& name() const { return name_; }  ///< of what is cut
  int count() const { return group_->size(); }
  int own() const { return count() - 1 - group_->rank(); }  ///< this rank's stage
  bool is_first() const { return own() == 0; }
  bool is_last() const { return own() == count() - 1; }
  /// This rank's layers.
  Tensor forward(Tensor x) const;

  /// The rank that computes with a tensor of the module.
  int owner(const Tensor& parameter) const;
  /// By its name in the module's state dictionary.
  int owner(const std::string& name) const;
  /// Parameters and buffers that belong to no stage.
  const std::vector<Tensor>& other_parameters() const { return other_parameters_; }
  const std::vector<Tensor>& other_buffers() const { return other_buffers_; }

  void drop_others();   ///< other ranks' parameters go
  void allocate();      ///< they have memory again, with any values
  void collect_all();   ///< all ranks have all parameters and buffers
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
  std::unordered_map<const TensorImpl*, int> owners_;  // of what belongs to stages
  std::vector<Parameter> parameters_;                  // of all stages, each once
  std::vector<Tensor> buffers_;
  std::vector<Tensor> other_parameters_, other_buffers_;
};

/// "2,2" as numbers; throws UsageError.
std::vector<std::int64_t> layers_of_stages(const std::string& balance);
/// Layers a stage: as `balance` says, or by the numbers of parameters. Throws UsageError for fewer layers than stages,
/// and for a balance of other numbers.
std::vector<std::int64_t> cut_into_stages(const nn::Sequential& cut, int stages, const std::string& balance);

}  // namespace levin
