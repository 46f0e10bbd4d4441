// Reductions without arguments of their own, one row each, read where LEVIN_REDUCTION_ROW is defined: the contract
// (reduce.h), the kernels of the CPU and of CUDA and their tables come from it. This header has no include guard, and
// undefines the macro.
//
// Columns: the name, and the struct of kernels/src/reductions.h with the mathematics.

#ifndef LEVIN_REDUCTION_ROW
#define LEVIN_REDUCTION_ROW(name, operation)
#endif
LEVIN_REDUCTION_ROW(prod, Prod)
LEVIN_REDUCTION_ROW(amax, Max)
LEVIN_REDUCTION_ROW(amin, Min)
LEVIN_REDUCTION_ROW(any, Any)
LEVIN_REDUCTION_ROW(all, All)
#undef LEVIN_REDUCTION_ROW
