#pragma once
// A network made anew from a checkpoint, without a Trainer.

#include <levin/core/side_by_side.h>
#include <levin/trainer/checkpoint.h>
#include <levin/trainer/module.h>

#include <concepts>
#include <memory>

namespace levin {

namespace detail {
/// The weights, after on_load_checkpoint; throws StateError that names the folder when they do not fit.
void load_checkpoint(nn::Module& module, const Checkpoint& checkpoint, const nn::LoadOptions& options,
                     const std::filesystem::path& folder);
/// "not in the checkpoint: ...; not in this network: ..."; empty when there is nothing of both.
std::string describe(const nn::LoadReport& report);
}  // namespace detail

/// Makes a Net and gives it the weights of a checkpoint (the folder, or a pointer such as `best`):
///
///     auto net = load_from_checkpoint<LitMnist>("runs/mnist/best");
///
/// The arguments are the constructor's. Without any, a Net that can be made from a StateMap gets the hyper-parameters
/// that were saved. hparams() has those saved and, before them, what the constructor saved itself. With
/// {.strict = false} in the place of the second argument names may be missing on either side; a warning lists them.
/// No random numbers are consumed. Throws IoError and StateError as read_checkpoint does, and StateError for weights
/// that do not fit.
template <std::derived_from<nn::Module> Net, class... A>
std::unique_ptr<Net> load_from_checkpoint(const std::filesystem::path& folder, const nn::LoadOptions& options,
                                          A&&... arguments) {
  const Checkpoint checkpoint = read_checkpoint(folder);
  std::unique_ptr<Net> net;
  {
    Generator copy = default_generator();
    const DefaultGeneratorGuard guard(copy);
    if constexpr (sizeof...(A) == 0 && std::constructible_from<Net, const StateMap&>)
      net = std::make_unique<Net>(checkpoint.hparams());
    else
      net = std::make_unique<Net>(std::forward<A>(arguments)...);
  }
  detail::load_checkpoint(*net, checkpoint, options, folder);
  return net;
}

template <std::derived_from<nn::Module> Net, class... A>
  requires(!std::same_as<std::remove_cvref_t<A>, nn::LoadOptions> && ...)
std::unique_ptr<Net> load_from_checkpoint(const std::filesystem::path& folder, A&&... arguments) {
  return load_from_checkpoint<Net>(folder, nn::LoadOptions{.convert = true}, std::forward<A>(arguments)...);
}

}  // namespace levin
