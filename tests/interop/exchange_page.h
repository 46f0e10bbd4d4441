// The program of docs/exchange.md.
#pragma once

#include <levin/autograd/ops.h>
#include <levin/interop/dlpack.h>
#include <levin/interop/safetensors.h>
#include <levin/interop/torch_file.h>
#include <levin/nn/nn.h>

#include <iostream>

// clang-format off
namespace exchange_page {

using namespace levin;

// begin of the page's program
struct Net : nn::Module {
  nn::Linear& fc = add<nn::Linear>("fc", 4, 3);
  nn::BatchNorm1d& norm = add<nn::BatchNorm1d>("norm", 3);
  nn::Linear& out = add<nn::Linear>("out", 3, 2);
  Tensor forward(const Tensor& x) override { return out(relu(norm(fc(x)))); }
};

Tensor exchange(const std::string& dir, const Tensor& x) {
  Net net;
  const auto file = interop::load_torch(dir + "/checkpoint.pt");
  std::cout << file;                                          // lists what it holds
  net.load_state_dict(file["model"].state_dict());
  std::cout << "trained for " << file["epoch"].get<int>() << " epochs\n";

  interop::save_safetensors(dir + "/net.safetensors", net.state_dict());
  interop::save_torch(dir + "/net.pt", net.state_dict());

  Net same;                                                   // pages are read when they are used
  same.load_state_dict(interop::load_safetensors(dir + "/net.safetensors", {.mmap = true}).tensors);
  same.eval();
  return same(x);
}
// end of the page's program

}  // namespace exchange_page
