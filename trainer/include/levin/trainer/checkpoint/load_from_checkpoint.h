#pragma once
// Constructs a network from a checkpoint, without a Trainer.

#include <levin/core/side_by_side.h>
#include <levin/trainer/checkpoint/checkpoint.h>
#include <levin/trainer/module.h>

#include <concepts>
#include <memory>

namespace levin {

namespace detail {
/// Calls on_load_checkpoint, then loads the weights; throws StateError with the folder if they do not fit.
void load_checkpoint(nn::Module& module, const Checkpoint& checkpoint, const nn::LoadOptions& options,
                     const std::string& folder);
/// Formats "not in the checkpoint: ...; not in this network: ...; converted ..."; empty if all names and dtypes match.
std::string describe(const nn::LoadReport& report);
}  // namespace detail

/// Constructs a Net and loads the weights of a checkpoint (the folder, or a pointer such as `best`):
///
///     auto net = load_from_checkpoint<LitMnist>("runs/mnist/best");
///
/// The arguments are forwarded to the constructor. Without arguments, a Net that is constructible from a StateMap
/// receives the saved hyper-parameters. hparams() holds those that the constructor saved, followed by the saved ones.
/// With {.strict = false} as second argument names may be missing on either side; a warning lists them. Weights of
/// another floating dtype are converted to the network's, with a warning. Consumes no random numbers. Throws IoError
/// and StateError as read_checkpoint does, and StateError if the weights do not fit.
template <std::derived_from<nn::Module> Net, class... A>
std::unique_ptr<Net> load_from_checkpoint(const std::string& folder, const nn::LoadOptions& options, A&&... arguments) {
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

/// As above, with the default LoadOptions.
template <std::derived_from<nn::Module> Net, class... A>
  requires(!std::same_as<std::remove_cvref_t<A>, nn::LoadOptions> && ...)
std::unique_ptr<Net> load_from_checkpoint(const std::string& folder, A&&... arguments) {
  return load_from_checkpoint<Net>(folder, nn::LoadOptions{}, std::forward<A>(arguments)...);
}

}  // namespace levin
