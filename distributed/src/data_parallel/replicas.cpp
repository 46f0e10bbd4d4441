#include "src/data_parallel/replicas.h"

#include <fmt/format.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/autograd/record.h>

#include <memory>

namespace levin::distributed {

namespace {

/// Copies a tensor to a device, counting the bytes that move.
Tensor moved_to(const Tensor& t, Device device, std::atomic<int64_t>& count) {
  if (t.device() != device) count += t.numel() * size_of(t.dtype());
  return t.to(device);
}

/// As moved_to, but on the same device returns an alias: a separate tensor for autograd, on the same memory.
Tensor sent(const Tensor& t, Device device, std::atomic<int64_t>& count) {
  if (t.device() == device) return alias(t, t.sizes(), t.strides(), t.storage_offset());
  return moved_to(t, device, count);
}

struct ReplicaParts {
  std::vector<int64_t> sizes;
  std::vector<Device> devices;
  BytesMovedPtr moved;
};

Grads joined_gradients(Context& c, std::span<const Tensor> grads) {
  const auto& p = c.get<ReplicaParts>();
  const TensorMeta& x = c.input(0);
  std::vector<Tensor> pieces;
  for (std::size_t r = 0; r < p.sizes.size(); ++r) {
    Shape sizes = x.sizes;
    sizes[0] = p.sizes[r];
    pieces.push_back(r < grads.size() && grads[r].defined() ? moved_to(grads[r], x.device, p.moved->input_gradients)
                                                            : zeros(sizes, {.dtype = x.dtype, .device = x.device}));
  }
  return {cat(pieces, 0)};
}

Grads summed_gradients(Context& c, std::span<const Tensor> grads) {
  Tensor sum;
  for (const Tensor& g : grads) {
    if (!g.defined()) continue;
    const Tensor here = moved_to(g, c.input(0).device, c.get<BytesMovedPtr>()->parameter_gradients);
    sum = sum.defined() ? add(sum, here) : here;
  }
  return {sum};
}

Grads parted_gradients(Context& c, const Tensor& g) {
  const auto& p = c.get<ReplicaParts>();
  Grads result;
  int64_t at = 0;
  for (std::size_t r = 0; r < p.sizes.size(); ++r) {
    const bool wanted = c.needs(static_cast<int>(r));
    result.push_back(wanted ? moved_to(g.narrow(0, at, p.sizes[r]), p.devices[r], p.moved->output_gradients)
                            : Tensor());
    at += p.sizes[r];
  }
  return result;
}

}  // namespace

int64_t batch_of(const std::vector<Tensor>& inputs) {
  if (inputs.empty()) throw ShapeError("[DataParallel] there is no input to split along its first dimension.");
  for (const Tensor& x : inputs) {
    if (x.dim() > 0 && x.size(0) == inputs[0].size(0)) continue;
    throw ShapeError(
        fmt::format("[DataParallel] inputs are split along their first dimension: one has shape {}, the "
                    "first {}.",
                    to_string(x.sizes()), to_string(inputs[0].sizes())));
  }
  return inputs[0].size(0);
}

std::vector<Tensor> scatter(const Tensor& x, const std::vector<int64_t>& sizes, std::span<const Device> devices,
                            const BytesMovedPtr& moved) {
  std::vector<Tensor> parts;
  {
    const no_grad guard;
    int64_t at = 0;
    for (std::size_t r = 0; r < sizes.size(); ++r) {
      parts.push_back(sent(x.detach().narrow(0, at, sizes[r]), devices[r], moved->inputs));
      at += sizes[r];
    }
  }
  if (Context* c = record("scatter_parts", std::span<const Tensor>(parts), std::span(&x, 1), joined_gradients))
    c->set(ReplicaParts{sizes, {}, moved});
  return parts;
}

std::vector<Tensor> replicate(const Tensor& p, std::span<const Device> devices, const BytesMovedPtr& moved) {
  std::vector<Tensor> copies;
  {
    const no_grad guard;
    for (const Device d : devices) copies.push_back(sent(p.detach(), d, moved->parameters));
  }
  if (Context* c = record("replicate", std::span<const Tensor>(copies), std::span(&p, 1), summed_gradients))
    c->set(moved);
  return copies;
}

Tensor buffer_copy(const Tensor& buffer, Device device, BytesMoved& moved) {
  const no_grad guard;
  const Tensor values = buffer.detach();
  return values.device() == device ? values.clone() : moved_to(values, device, moved.parameters);
}

Tensor gather(std::vector<Tensor> parts, Device device, const BytesMovedPtr& moved) {
  ReplicaParts p{{}, {}, moved};
  for (Tensor& part : parts) {
    if (part.dim() == 0) part = part.reshape({1});
    p.sizes.push_back(part.size(0));
    p.devices.push_back(part.device());
  }
  Tensor whole;
  {
    const no_grad guard;
    std::vector<Tensor> here;
    for (const Tensor& part : parts) here.push_back(moved_to(part.detach(), device, moved->outputs));
    whole = cat(here, 0);
  }
  if (Context* c = record("gather_parts", whole, std::span<const Tensor>(parts), parted_gradients)) c->set(p);
  return whole;
}

}  // namespace levin::distributed
