#include "cuda/nccl_calls.h"

#include <fmt/format.h>
#include <levin/kernels/cuda.h>

#include <algorithm>

namespace levin::distributed {

using namespace kernels::cuda;

namespace {

using Kind = Collective::Kind;

bool reduces(Kind kind) { return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter; }

nccl_api::Type type_of(DType dtype) {
  using T = nccl_api::Type;
  if (is_complex(dtype)) levin::detail::refuse_dtype("nccl", dtype, "real types");
  constexpr T kTypes[kRealDTypeCount] = {T::kFloat64, T::kFloat32, T::kFloat16, T::kBFloat16, T::kInt64,
                                     T::kInt32,   T::kUint8,   T::kInt8,    T::kUint8,    T::kUint8};
  return kTypes[static_cast<int>(dtype)];
}

/// Booleans are bytes of 0 and 1: their sum is "or", computed as maximum, and their product "and", computed as minimum.
nccl_api::Operation operation_of(const Collective& c, DType dtype) {
  using Op = nccl_api::Operation;
  const bool logical = dtype == kBool;
  switch (c.op) {
    case ReduceOp::sum:
      return logical ? Op::kMaximum : Op::kSum;
    case ReduceOp::product:
      return logical ? Op::kMinimum : Op::kProduct;
    case ReduceOp::min:
      return Op::kMinimum;
    case ReduceOp::max:
      return Op::kMaximum;
    case ReduceOp::avg:
      return Op::kAverage;
  }
  return Op::kSum;
}

/// Number of elements as passed to NCCL: int16, which NCCL does not have, is moved as twice as many bytes.
std::size_t units(const Tensor& t, int64_t elements) {
  return static_cast<std::size_t>(t.dtype() == kInt16 ? 2 * elements : elements);
}
std::size_t units(const Tensor& t) { return units(t, t.numel()); }

std::byte* at(const Tensor& t, int64_t element) {
  return static_cast<std::byte*>(t.raw_data()) + element * size_of(t.dtype());
}

/// Sends and receives parts of tensors.
class Messages {
 public:
  Messages(const nccl_api::Functions& nccl, nccl_api::Comm comm, cudaStream_t stream)
      : nccl_(nccl), comm_(comm), stream_(stream) {}
  void send(const Tensor& t, int64_t from, int64_t elements, int to) const {
    if (elements == 0) return;
    check(nccl_.send(at(t, from), units(t, elements), type_of(t.dtype()), to, comm_, stream_), "ncclSend", comm_);
  }
  void recv(const Tensor& t, int64_t begin, int64_t elements, int from) const {
    if (elements == 0) return;
    check(nccl_.recv(at(t, begin), units(t, elements), type_of(t.dtype()), from, comm_, stream_), "ncclRecv", comm_);
  }

 private:
  const nccl_api::Functions& nccl_;
  nccl_api::Comm comm_;
  cudaStream_t stream_;
};

/// Returns where the parts of an all_to_all begin, in elements.
std::vector<int64_t> begins(const std::vector<int64_t>& splits) {
  std::vector<int64_t> begin = {0};
  for (const int64_t n : splits) begin.push_back(begin.back() + n);
  return begin;
}

void queue_gather(const Collective& c, int rank, int size, const Messages& messages) {
  const int64_t part = c.input.numel();
  if (rank != c.root) return messages.send(c.input, 0, part, c.root);
  for (int r = 0; r < size; ++r) {
    if (r != rank) messages.recv(c.output, r * part, part, r);
  }
}

void queue_scatter(const Collective& c, int rank, int size, const Messages& messages) {
  const int64_t part = c.output.numel();
  if (rank != c.root) return messages.recv(c.output, 0, part, c.root);
  for (int r = 0; r < size; ++r) {
    if (r != rank) messages.send(c.input, r * part, part, r);
  }
}

void queue_all_to_all(const Collective& c, int rank, int size, const Messages& messages) {
  const auto from = begins(c.input_splits), to = begins(c.output_splits);
  for (int i = 1; i < size; ++i) {
    const auto target = static_cast<std::size_t>((rank + i) % size),
               source = static_cast<std::size_t>((rank + size - i) % size);
    messages.send(c.input, from[target], c.input_splits[target], static_cast<int>(target));
    messages.recv(c.output, to[source], c.output_splits[source], static_cast<int>(source));
  }
}

}  // namespace

void check_for_nccl(const Collective& c, int device) {
  for (const Tensor* t : {&c.output, &c.input}) {
    if (!t->defined()) continue;
    if (t->device() != levin::cuda(device)) {
      throw DeviceError(
          fmt::format("[{}] the tensor is on {}, but this rank of the nccl group uses cuda:{}. Move it there, or make "
                      "the group \"cpu:gloo,cuda:nccl\" for tensors of both.",
                      to_string(c.kind), to_string(t->device()), device));
    }
    if (reduces(c.kind) && t->dtype() == kInt16) {
      throw DTypeError(fmt::format("[{}] NCCL does not reduce int16; reduce a copy of type int32.", to_string(c.kind)));
    }
  }
}

void copy_own_part(const Collective& c, int rank, int device, cudaStream_t stream) {
  const auto copy = [&](int64_t to, int64_t from, int64_t elements) {
    if (elements == 0 || at(c.output, to) == at(c.input, from)) return;
    levin::Stream on(levin::cuda(device), stream);
    device_backend(DeviceType::cuda)
        .copy(at(c.output, to), on.device(), at(c.input, from), on.device(),
              static_cast<std::size_t>(elements * size_of(c.input.dtype())), on);
  };
  if (c.kind == Kind::gather && rank == c.root) copy(rank * c.input.numel(), 0, c.input.numel());
  if (c.kind == Kind::scatter && rank == c.root) copy(0, rank * c.output.numel(), c.output.numel());
  if (c.kind != Kind::all_to_all) return;
  const auto own = static_cast<std::size_t>(rank);
  copy(begins(c.output_splits)[own], begins(c.input_splits)[own], c.input_splits[own]);
}

void queue_on_nccl(const Collective& c, int rank, int size, const nccl_api::Functions& nccl, nccl_api::Comm comm,
                   cudaStream_t stream) {
  const Messages messages(nccl, comm, stream);
  const Tensor& out = c.output;
  const Tensor& in = c.input.defined() ? c.input : c.output;
  const nccl_api::Type type = type_of(in.dtype());
  const nccl_api::Operation op = operation_of(c, in.dtype());
  switch (c.kind) {
    case Kind::all_reduce:
    case Kind::barrier:
      return check(nccl.all_reduce(in.raw_data(), out.raw_data(), units(in), type, op, comm, stream), "ncclAllReduce",
                   comm);
    case Kind::reduce:
      return check(nccl.reduce(in.raw_data(), out.raw_data(), units(in), type, op, c.root, comm, stream), "ncclReduce",
                   comm);
    case Kind::broadcast:
      return check(nccl.broadcast(in.raw_data(), out.raw_data(), units(in), type, c.root, comm, stream),
                   "ncclBroadcast", comm);
    case Kind::all_gather:
      return check(nccl.all_gather(in.raw_data(), out.raw_data(), units(in), type, comm, stream), "ncclAllGather",
                   comm);
    case Kind::reduce_scatter:
      return check(nccl.reduce_scatter(in.raw_data(), out.raw_data(), units(out), type, op, comm, stream),
                   "ncclReduceScatter", comm);
    case Kind::gather:
      return queue_gather(c, rank, size, messages);
    case Kind::scatter:
      return queue_scatter(c, rank, size, messages);
    case Kind::all_to_all:
      return queue_all_to_all(c, rank, size, messages);
    case Kind::send:
      return messages.send(in, 0, in.numel(), c.root);
    case Kind::recv:
      return messages.recv(out, 0, out.numel(), c.root);
  }
}

}  // namespace levin::distributed
