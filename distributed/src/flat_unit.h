#pragma once
// Parameters that are divided among ranks together: in one memory, one after the other, of which every rank owns a part
// of the same size.

#include <levin/core/state_dict.h>
#include <levin/distributed/process_group.h>
#include <levin/distributed/shard.h>
#include <levin/optim/optimizer.h>

namespace levin::distributed {

/// One parameter in a unit.
struct UnitEntry {
  Parameter parameter;
  Shape sizes;
  int64_t begin = 0, numel = 0;  ///< its place in the unit
  int64_t own_begin = 0, own_end = 0;  ///< this rank's of its elements, maybe none
  Parameter piece;                     ///< those, a leaf of one dimension
};

/// Of one dtype on one device. The parts of all ranks together may be a few elements longer than the parameters.
class FlatUnit {
 public:
  /// Pieces are views of the parameters' own memory.
  static FlatUnit of_parameters(const std::vector<Parameter>& parameters, const ProcessGroup& group);
  /// Pieces are views of shard(), which gets the parameters' values.
  static FlatUnit of_shard(const std::vector<Parameter>& parameters, const ProcessGroup& group);

  const std::vector<UnitEntry>& entries() const { return entries_; }
  int64_t part() const { return part_; }  ///< elements of a rank
  const Tensor& shard() const { return shard_; }
  Tensor empty_whole() const { return empty({part_ * size_}, options_); }  ///< (part * ranks)
  Tensor empty_part() const { return empty({part_}, options_); }
  /// This rank's part of such a memory.
  Tensor own(const Tensor& whole) const { return whole.narrow(0, rank_ * part_, part_); }

  /// The gradients in a new whole memory, zeros where there is none; the parameters lose theirs.
  Tensor take_gradients() const;
  /// The part of `part` (of this rank) that belongs to an entry.
  Tensor piece_of(const Tensor& part, const UnitEntry& e) const;
  /// The pieces' values into this rank's part of `whole`.
  void pack(const Tensor& whole) const;
  /// What other ranks own, from `whole` into the parameters.
  void unpack_others(const Tensor& whole) const;

 private:
  FlatUnit(const std::vector<Parameter>& parameters, const ProcessGroup& group);

  std::vector<UnitEntry> entries_;
  TensorOptions options_;
  int64_t part_ = 0;
  int rank_, size_;
  Tensor shard_;
};

/// (own elements), a view of a contiguous tensor of the parameter's shape.
Tensor own_elements(const UnitEntry& e, const Tensor& parameter);

/// Adds this rank's elements of a tensor that is divided as the parameter is; nothing where it has none. A tensor
/// without elements is rank 0's.
void add_shard(std::vector<Shard>& shards, const UnitEntry& e, const std::string& name, const Tensor& own, int rank);

/// Units of about `cap_mb` MiB in the order of the parameters, a bigger parameter by itself; each holds one dtype on
/// one device.
std::vector<std::vector<Parameter>> divide_into_units(const std::vector<Parameter>& parameters, double cap_mb);

/// Throws ValueError for an optimizer that looks at more than one element of a parameter at a time.
void require_elementwise(const optim::Optimizer& optimizer);
/// The state of an optimizer that steps pieces, by the names that it has for them, as if it stepped the parameters; on
/// rank 0, else empty. All ranks call.
StateDict gather_state(const optim::Optimizer& optimizer, const std::vector<const FlatUnit*>& units,
                       ProcessGroup& group);
/// What this rank has of it. A tensor that is not divided is rank 0's.
std::vector<Shard> state_shards(const optim::Optimizer& optimizer, const std::vector<const FlatUnit*>& units, int rank);
/// Gives such an optimizer this rank's part. Throws StateError.
void load_state(optim::Optimizer& optimizer, const std::vector<const FlatUnit*>& units, const StateDict& whole);

}  // namespace levin::distributed
