#pragma once
// Parameters that are sharded together: they lie one after the other in one memory, of which every rank owns an equal
// part.

#include <levin/core/state_dict.h>
#include <levin/distributed/process_group.h>
#include <levin/distributed/shard.h>
#include <levin/optim/optimizer.h>

namespace levin::distributed {

/// One parameter in a unit.
struct UnitEntry {
  Parameter parameter;
  Shape sizes;
  int64_t begin = 0, numel = 0;        ///< range in the unit
  int64_t own_begin = 0, own_end = 0;  ///< range of this rank's elements in the parameter, may be empty
  Parameter piece;                     ///< this rank's elements, a leaf of one dimension
};

/// Parameters of one dtype on one device. The parts of all ranks may have a few elements more than the parameters.
class FlatUnit {
 public:
  /// Makes a unit whose pieces are views of the parameters' own memory.
  static FlatUnit of_parameters(const std::vector<Parameter>& parameters, const ProcessGroup& group);
  /// Makes a unit whose pieces are views of shard(), into which the parameters are copied.
  static FlatUnit of_shard(const std::vector<Parameter>& parameters, const ProcessGroup& group);

  const std::vector<UnitEntry>& entries() const { return entries_; }
  int64_t part() const { return part_; }  ///< number of elements of a rank
  const Tensor& shard() const { return shard_; }
  Tensor empty_whole() const { return empty({part_ * size_}, options_); }  ///< (part * ranks)
  Tensor empty_part() const { return empty({part_}, options_); }
  /// Returns this rank's part of a (part * ranks) tensor.
  Tensor own(const Tensor& whole) const { return whole.narrow(0, rank_ * part_, part_); }

  /// Moves the gradients into a new (part * ranks) tensor, with zeros where there are none.
  Tensor take_gradients() const;
  /// Returns the elements of an entry in `part`, which is this rank's.
  Tensor piece_of(const Tensor& part, const UnitEntry& e) const;
  /// Copies the pieces into this rank's part of `whole`.
  void pack(const Tensor& whole) const;
  /// Copies the other ranks' elements from `whole` into the parameters.
  void unpack_others(const Tensor& whole) const;

 private:
  FlatUnit(const std::vector<Parameter>& parameters, const ProcessGroup& group);

  std::vector<UnitEntry> entries_;
  TensorOptions options_;
  int64_t part_ = 0;
  int rank_, size_;
  Tensor shard_;
};

/// Returns a view (own elements) of a contiguous tensor of the parameter's shape.
Tensor own_elements(const UnitEntry& e, const Tensor& parameter);

/// Adds this rank's elements of a tensor that is sharded like the parameter; adds nothing if it has none. A tensor
/// without elements is rank 0's.
void add_shard(std::vector<Shard>& shards, const UnitEntry& e, const std::string& name, const Tensor& own, int rank);

/// Divides parameters, in their order, into units of about `cap_mb` MiB; a larger parameter is a unit by itself. Each
/// unit holds one dtype on one device.
std::vector<std::vector<Parameter>> divide_into_units(const std::vector<Parameter>& parameters, double cap_mb);

/// Throws ValueError for an optimizer whose update of an element depends on other elements of the parameter.
void require_elementwise(const optim::Optimizer& optimizer);
/// Gathers the state of an optimizer that steps pieces, as if it stepped the parameters, under its own names; on rank
/// 0, empty elsewhere. Must be called on all ranks.
StateDict gather_state(const optim::Optimizer& optimizer, const std::vector<const FlatUnit*>& units,
                       ProcessGroup& group);
/// Returns this rank's shards of that state. A tensor that is not sharded is rank 0's.
std::vector<Shard> state_shards(const optim::Optimizer& optimizer, const std::vector<const FlatUnit*>& units, int rank);
/// Loads this rank's part into such an optimizer. Throws StateError.
void load_state(optim::Optimizer& optimizer, const std::vector<const FlatUnit*>& units, const StateDict& whole);

}  // namespace levin::distributed
