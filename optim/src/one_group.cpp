// The constructors that take parameters, or tensors, which become one group. They are not inline, because the compiler
// would resolve a call with five overloads for each of them in every program that includes <levin/levin.h>.

#include <levin/optim/optim.h>

#include <utility>

namespace levin::optim {

#define LEVIN_OF_ONE_GROUP(Class)                                                                            \
  Class::Class(std::vector<Parameter> params, const Options& o) : Class(one_group(std::move(params)), o) {}  \
  Class::Class(const std::vector<Tensor>& params, const Options& o) : Class(named(params), o) {}

LEVIN_OF_ONE_GROUP(ASGD)
LEVIN_OF_ONE_GROUP(Adadelta)
LEVIN_OF_ONE_GROUP(Adagrad)
LEVIN_OF_ONE_GROUP(Adam)
LEVIN_OF_ONE_GROUP(AdamW)
LEVIN_OF_ONE_GROUP(Adamax)
LEVIN_OF_ONE_GROUP(LAMB)
LEVIN_OF_ONE_GROUP(Lion)
LEVIN_OF_ONE_GROUP(Muon)
LEVIN_OF_ONE_GROUP(NAdam)
LEVIN_OF_ONE_GROUP(QAdam)
LEVIN_OF_ONE_GROUP(RAdam)
LEVIN_OF_ONE_GROUP(RMSprop)
LEVIN_OF_ONE_GROUP(Rprop)
LEVIN_OF_ONE_GROUP(SGD)
LEVIN_OF_ONE_GROUP(SparseAdam)

#undef LEVIN_OF_ONE_GROUP

}  // namespace levin::optim
