// Members of Tensor that forward to the free functions of the same names, one row each: tensor.h declares them, and
// autograd defines them. This header has no include guard: define the macros that are needed and include it; it
// undefines them.
//
//   LEVIN_METHOD(result, name, parameters, arguments)   x.name(parameters) is name(x, arguments)
//   LEVIN_DEFAULT(value)                                a default value, which only the declaration has
//   LEVIN_IN_PLACE_METHOD(name)                         x.name_() replaces x's values by name(x)
//   LEVIN_EDIT(name, tensors, parameters, arguments)    x.name_(parameters) replaces them by name(x, arguments), of
//                                                       which `tensors`, in parentheses, may require grad

#ifndef LEVIN_DEFAULT
#define LEVIN_DEFAULT(value)
#endif
#ifndef LEVIN_METHOD
#define LEVIN_METHOD(result, name, parameters, ...)
#endif
#ifndef LEVIN_IN_PLACE_METHOD
#define LEVIN_IN_PLACE_METHOD(name)
#endif
#ifndef LEVIN_EDIT
#define LEVIN_EDIT(name, tensors, parameters, ...)
#endif

#define LEVIN_METHOD_OF_ONE(name) LEVIN_METHOD(Tensor, name, ())
#define LEVIN_METHOD_OF_TWO(name) LEVIN_METHOD(Tensor, name, (const Tensor& other), other)
#define LEVIN_METHOD_OF_NUMBER(name) LEVIN_METHOD(Tensor, name, (const Scalar& other), other)
#define LEVIN_METHOD_OF_BOTH(name) LEVIN_METHOD_OF_TWO(name) LEVIN_METHOD_OF_NUMBER(name)

// Functions of one tensor that have an in-place form.
#define LEVIN_FUNCTION(name) LEVIN_METHOD_OF_ONE(name) LEVIN_IN_PLACE_METHOD(name)
LEVIN_FUNCTION(neg)
LEVIN_FUNCTION(abs)
LEVIN_FUNCTION(sign)
LEVIN_FUNCTION(square)
LEVIN_FUNCTION(floor)
LEVIN_FUNCTION(ceil)
LEVIN_FUNCTION(round)
LEVIN_FUNCTION(trunc)
LEVIN_FUNCTION(reciprocal)
LEVIN_FUNCTION(sqrt)
LEVIN_FUNCTION(rsqrt)
LEVIN_FUNCTION(exp)
LEVIN_FUNCTION(expm1)
LEVIN_FUNCTION(log)
LEVIN_FUNCTION(log2)
LEVIN_FUNCTION(log10)
LEVIN_FUNCTION(log1p)
LEVIN_FUNCTION(sin)
LEVIN_FUNCTION(cos)
LEVIN_FUNCTION(tan)
LEVIN_FUNCTION(erf)
LEVIN_FUNCTION(erfc)
LEVIN_FUNCTION(erfinv)
LEVIN_FUNCTION(lgamma)
LEVIN_FUNCTION(exp2)
LEVIN_FUNCTION(asin)
LEVIN_FUNCTION(acos)
LEVIN_FUNCTION(atan)
LEVIN_FUNCTION(sinh)
LEVIN_FUNCTION(cosh)
LEVIN_FUNCTION(asinh)
LEVIN_FUNCTION(acosh)
LEVIN_FUNCTION(atanh)
LEVIN_FUNCTION(relu)
LEVIN_FUNCTION(sigmoid)
LEVIN_FUNCTION(tanh)
#undef LEVIN_FUNCTION
LEVIN_METHOD_OF_ONE(digamma)
LEVIN_METHOD(Tensor, clamp_min, (const Scalar& min), min)
LEVIN_METHOD(Tensor, clamp_min, (const Tensor& min), min)
LEVIN_METHOD(Tensor, clamp_max, (const Scalar& max), max)
LEVIN_METHOD(Tensor, clamp_max, (const Tensor& max), max)
LEVIN_METHOD_OF_BOTH(float_power)
LEVIN_METHOD_OF_ONE(frac)
LEVIN_METHOD_OF_ONE(sinc)
LEVIN_METHOD_OF_ONE(deg2rad)
LEVIN_METHOD_OF_ONE(rad2deg)
LEVIN_METHOD_OF_ONE(real)
LEVIN_METHOD_OF_ONE(imag)
LEVIN_METHOD_OF_ONE(conj)
LEVIN_METHOD_OF_ONE(angle)

// Properties and conditions.
LEVIN_METHOD_OF_ONE(isnan)
LEVIN_METHOD_OF_ONE(isinf)
LEVIN_METHOD_OF_ONE(isfinite)
LEVIN_METHOD_OF_ONE(logical_not)
LEVIN_METHOD_OF_ONE(isposinf)
LEVIN_METHOD_OF_ONE(isneginf)
LEVIN_METHOD_OF_ONE(signbit)
LEVIN_METHOD(bool, equal, (const Tensor& other), other)
LEVIN_METHOD_OF_BOTH(eq)
LEVIN_METHOD_OF_BOTH(ne)
LEVIN_METHOD_OF_BOTH(lt)
LEVIN_METHOD_OF_BOTH(le)
LEVIN_METHOD_OF_BOTH(gt)
LEVIN_METHOD_OF_BOTH(ge)
LEVIN_METHOD_OF_TWO(logical_and)
LEVIN_METHOD_OF_TWO(logical_or)
LEVIN_METHOD_OF_TWO(logical_xor)

// Arithmetic.
LEVIN_METHOD(Tensor, add, (const Tensor& other, const Scalar& alpha LEVIN_DEFAULT(1)), other, alpha)
LEVIN_METHOD_OF_NUMBER(add)
LEVIN_METHOD(Tensor, sub, (const Tensor& other, const Scalar& alpha LEVIN_DEFAULT(1)), other, alpha)
LEVIN_METHOD_OF_NUMBER(sub)
LEVIN_METHOD_OF_BOTH(mul)
LEVIN_METHOD_OF_BOTH(div)
LEVIN_METHOD_OF_BOTH(floor_divide)
LEVIN_METHOD_OF_BOTH(remainder)
LEVIN_METHOD_OF_BOTH(pow)
LEVIN_METHOD_OF_TWO(maximum)
LEVIN_METHOD_OF_TWO(minimum)
LEVIN_METHOD_OF_TWO(atan2)
LEVIN_METHOD_OF_BOTH(fmod)
LEVIN_METHOD_OF_TWO(hypot)
LEVIN_METHOD_OF_TWO(copysign)
LEVIN_METHOD_OF_TWO(prelu)
LEVIN_METHOD_OF_TWO(logaddexp)
LEVIN_METHOD_OF_TWO(logaddexp2)
LEVIN_METHOD_OF_TWO(xlogy)
LEVIN_METHOD_OF_TWO(ldexp)
LEVIN_METHOD_OF_TWO(heaviside)
LEVIN_METHOD_OF_TWO(bitwise_left_shift)
LEVIN_METHOD_OF_TWO(bitwise_right_shift)
LEVIN_METHOD_OF_BOTH(bitwise_and)
LEVIN_METHOD_OF_BOTH(bitwise_or)
LEVIN_METHOD_OF_BOTH(bitwise_xor)
LEVIN_METHOD_OF_ONE(bitwise_not)
LEVIN_METHOD(Tensor, lerp, (const Tensor& end, const Tensor& weight), end, weight)
LEVIN_METHOD(Tensor, lerp, (const Tensor& end, const Scalar& weight), end, weight)
LEVIN_METHOD(Tensor, addcmul, (const Tensor& a, const Tensor& b, const Scalar& value LEVIN_DEFAULT(1)), a, b, value)
LEVIN_METHOD(Tensor, addcdiv, (const Tensor& a, const Tensor& b, const Scalar& value LEVIN_DEFAULT(1)), a, b, value)
LEVIN_METHOD(Tensor, clamp,
             (std::optional<Scalar> min, std::optional<Scalar> max LEVIN_DEFAULT(std::nullopt)), min, max)
LEVIN_METHOD(Tensor, clamp, (const Tensor& min, const Tensor& max LEVIN_DEFAULT({})), min, max)
LEVIN_METHOD(Tensor, logit, (std::optional<double> eps LEVIN_DEFAULT(std::nullopt)), eps)
LEVIN_METHOD(Tensor, nan_to_num,
             (double nan LEVIN_DEFAULT(0.0), std::optional<double> posinf LEVIN_DEFAULT(std::nullopt),
              std::optional<double> neginf LEVIN_DEFAULT(std::nullopt)), nan, posinf, neginf)
LEVIN_METHOD(Tensor, masked_fill, (const Tensor& mask, const Scalar& value), mask, value)
LEVIN_METHOD(Tensor, bernoulli, (Generator* generator LEVIN_DEFAULT(nullptr)), generator)
LEVIN_METHOD(const Tensor&, uniform_, (double low LEVIN_DEFAULT(0.0), double high LEVIN_DEFAULT(1.0),
                                       Generator* generator LEVIN_DEFAULT(nullptr)), low, high, generator)
LEVIN_METHOD(const Tensor&, normal_, (double mean LEVIN_DEFAULT(0.0), double std LEVIN_DEFAULT(1.0),
                                      Generator* generator LEVIN_DEFAULT(nullptr)), mean, std, generator)
LEVIN_METHOD(const Tensor&, exponential_, (double lambd LEVIN_DEFAULT(1.0),
                                           Generator* generator LEVIN_DEFAULT(nullptr)), lambd, generator)
LEVIN_METHOD(const Tensor&, bernoulli_, (double p LEVIN_DEFAULT(0.5), Generator* generator LEVIN_DEFAULT(nullptr)), p,
             generator)
LEVIN_METHOD(const Tensor&, bernoulli_, (const Tensor& p, Generator* generator LEVIN_DEFAULT(nullptr)), p, generator)
LEVIN_METHOD(const Tensor&, random_, (int64_t from, int64_t to, Generator* generator LEVIN_DEFAULT(nullptr)), from, to,
             generator)

// In place.
#define LEVIN_EDIT_BY_BOTH(name)                                                     \
  LEVIN_EDIT(name, (other), (const Tensor& other), other)                            \
  LEVIN_EDIT(name, (), (const Scalar& other), other)
LEVIN_EDIT_BY_BOTH(pow)
LEVIN_EDIT_BY_BOTH(remainder)
LEVIN_EDIT_BY_BOTH(fmod)
LEVIN_EDIT_BY_BOTH(floor_divide)
LEVIN_EDIT_BY_BOTH(clamp_min)
LEVIN_EDIT_BY_BOTH(clamp_max)
#undef LEVIN_EDIT_BY_BOTH
LEVIN_EDIT(atan2, (other), (const Tensor& other), other)
LEVIN_EDIT(copysign, (other), (const Tensor& other), other)
LEVIN_EDIT(hypot, (other), (const Tensor& other), other)
LEVIN_EDIT(logical_and, (), (const Tensor& other), other)
LEVIN_EDIT(logical_or, (), (const Tensor& other), other)
LEVIN_EDIT(logical_xor, (), (const Tensor& other), other)
LEVIN_EDIT(logical_not, (), ())
LEVIN_EDIT(nan_to_num, (),
           (double nan LEVIN_DEFAULT(0.0), std::optional<double> posinf LEVIN_DEFAULT(std::nullopt),
            std::optional<double> neginf LEVIN_DEFAULT(std::nullopt)), nan, posinf, neginf)
LEVIN_EDIT(lerp, (end, weight), (const Tensor& end, const Tensor& weight), end, weight)
LEVIN_EDIT(lerp, (end), (const Tensor& end, const Scalar& weight), end, weight)
LEVIN_EDIT(addcmul, (a, b), (const Tensor& a, const Tensor& b, const Scalar& value LEVIN_DEFAULT(1)), a, b, value)
LEVIN_EDIT(addcdiv, (a, b), (const Tensor& a, const Tensor& b, const Scalar& value LEVIN_DEFAULT(1)), a, b, value)
LEVIN_EDIT(addmm, (a, b), (const Tensor& a, const Tensor& b, const Scalar& beta LEVIN_DEFAULT(1),
                           const Scalar& alpha LEVIN_DEFAULT(1)), a, b, beta, alpha)
LEVIN_EDIT(baddbmm, (a, b), (const Tensor& a, const Tensor& b, const Scalar& beta LEVIN_DEFAULT(1),
                             const Scalar& alpha LEVIN_DEFAULT(1)), a, b, beta, alpha)
LEVIN_EDIT(cumsum, (), (int64_t axis), axis)
LEVIN_EDIT(cumprod, (), (int64_t axis), axis)
LEVIN_EDIT(tril, (), (int64_t diagonal LEVIN_DEFAULT(0)), diagonal)
LEVIN_EDIT(triu, (), (int64_t diagonal LEVIN_DEFAULT(0)), diagonal)
LEVIN_EDIT(scatter, (source), (int64_t axis, const Tensor& index, const Tensor& source), axis, index, source)
LEVIN_EDIT(scatter, (), (int64_t axis, const Tensor& index, const Scalar& value), axis, index, value)
LEVIN_EDIT(scatter_add, (source), (int64_t axis, const Tensor& index, const Tensor& source), axis, index, source)
LEVIN_EDIT(scatter_reduce, (source),
           (int64_t axis, const Tensor& index, const Tensor& source, ScatterReduce reduce,
            bool include_self LEVIN_DEFAULT(true)), axis, index, source, reduce, include_self)
LEVIN_EDIT(index_add, (source), (int64_t axis, const Tensor& index, const Tensor& source), axis, index, source)
LEVIN_EDIT(index_copy, (source), (int64_t axis, const Tensor& index, const Tensor& source), axis, index, source)
LEVIN_EDIT(index_fill, (), (int64_t axis, const Tensor& index, const Scalar& value), axis, index, value)
LEVIN_EDIT(masked_scatter, (source), (const Tensor& mask, const Tensor& source), mask, source)

// Matrix products.
LEVIN_METHOD_OF_TWO(matmul)
LEVIN_METHOD_OF_TWO(mm)
LEVIN_METHOD_OF_TWO(bmm)
LEVIN_METHOD(Tensor, addmm, (const Tensor& a, const Tensor& b, const Scalar& beta LEVIN_DEFAULT(1),
                             const Scalar& alpha LEVIN_DEFAULT(1)), a, b, beta, alpha)

LEVIN_METHOD_OF_TWO(dot)
LEVIN_METHOD_OF_TWO(vdot)
LEVIN_METHOD_OF_TWO(inner)
LEVIN_METHOD_OF_TWO(mv)
LEVIN_METHOD_OF_TWO(outer)
LEVIN_METHOD_OF_TWO(kron)
LEVIN_METHOD(Tensor, addmv, (const Tensor& a, const Tensor& b, const Scalar& beta LEVIN_DEFAULT(1),
                             const Scalar& alpha LEVIN_DEFAULT(1)), a, b, beta, alpha)
LEVIN_METHOD(Tensor, addr, (const Tensor& a, const Tensor& b, const Scalar& beta LEVIN_DEFAULT(1),
                            const Scalar& alpha LEVIN_DEFAULT(1)), a, b, beta, alpha)
LEVIN_METHOD(Tensor, baddbmm, (const Tensor& a, const Tensor& b, const Scalar& beta LEVIN_DEFAULT(1),
                               const Scalar& alpha LEVIN_DEFAULT(1)), a, b, beta, alpha)
LEVIN_METHOD(Tensor, addbmm, (const Tensor& a, const Tensor& b, const Scalar& beta LEVIN_DEFAULT(1),
                              const Scalar& alpha LEVIN_DEFAULT(1)), a, b, beta, alpha)
LEVIN_METHOD(Tensor, cross, (const Tensor& other, int64_t axis LEVIN_DEFAULT(-1)), other, axis)
LEVIN_METHOD(Tensor, matrix_power, (int64_t n), n)

// Reductions and scans; no axes means all.
#define LEVIN_REDUCTION(name)                                                                                 \
  LEVIN_METHOD(Tensor, name, (const Axes& axes LEVIN_DEFAULT({}), bool keepdim LEVIN_DEFAULT(false)), axes,    \
               keepdim)
#define LEVIN_REDUCTION_OF_DTYPE(name)                                                                        \
  LEVIN_REDUCTION(name)                                                                                       \
  LEVIN_METHOD(Tensor, name, (const Axes& axes, const ReduceOptions& options), axes, options)                  \
  LEVIN_METHOD(Tensor, name, (const DTypeOptions& options), options)
#define LEVIN_ALONG_OF_DTYPE(name)                                                                            \
  LEVIN_METHOD(Tensor, name, (int64_t axis), axis)                                                             \
  LEVIN_METHOD(Tensor, name, (int64_t axis, const DTypeOptions& options), axis, options)
#define LEVIN_VARIANCE(name)                                                                                  \
  LEVIN_METHOD(Tensor, name,                                                                                   \
               (const Axes& axes LEVIN_DEFAULT({}), double correction LEVIN_DEFAULT(1.0),                     \
                bool keepdim LEVIN_DEFAULT(false)), axes, correction, keepdim)                                 \
  LEVIN_METHOD(Tensor, name, (const Axes& axes, const VarOptions& options), axes, options)
LEVIN_REDUCTION_OF_DTYPE(sum)
LEVIN_REDUCTION_OF_DTYPE(mean)
LEVIN_REDUCTION_OF_DTYPE(prod)
LEVIN_VARIANCE(var)
LEVIN_VARIANCE(std)
LEVIN_REDUCTION(amax)
LEVIN_REDUCTION(amin)
LEVIN_REDUCTION(any)
LEVIN_REDUCTION(all)
LEVIN_REDUCTION(nansum)
LEVIN_REDUCTION(nanmean)
LEVIN_METHOD(Tensor, count_nonzero, (const Axes& axes LEVIN_DEFAULT({})), axes)
LEVIN_METHOD(Tensor, dist, (const Tensor& other, double p LEVIN_DEFAULT(2.0)), other, p)
LEVIN_METHOD_OF_ONE(median)
LEVIN_METHOD(ValuesIndices, median, (int64_t axis, bool keepdim LEVIN_DEFAULT(false)), axis, keepdim)
LEVIN_METHOD(ValuesIndices, mode, (int64_t axis LEVIN_DEFAULT(-1), bool keepdim LEVIN_DEFAULT(false)), axis, keepdim)
LEVIN_METHOD(ValuesIndices, kthvalue,
             (int64_t k, int64_t axis LEVIN_DEFAULT(-1), bool keepdim LEVIN_DEFAULT(false)), k, axis, keepdim)
LEVIN_METHOD(Tensor, quantile, (double q, std::optional<int64_t> axis LEVIN_DEFAULT(std::nullopt),
                                bool keepdim LEVIN_DEFAULT(false)), q, axis, keepdim)
LEVIN_METHOD(Tensor, quantile, (const Tensor& q, std::optional<int64_t> axis LEVIN_DEFAULT(std::nullopt),
                                bool keepdim LEVIN_DEFAULT(false)), q, axis, keepdim)
LEVIN_METHOD(Tensor, cumprod, (int64_t axis), axis)
LEVIN_METHOD(Tensor, logcumsumexp, (int64_t axis), axis)
LEVIN_METHOD(ValuesIndices, cummax, (int64_t axis), axis)
LEVIN_METHOD(ValuesIndices, cummin, (int64_t axis), axis)
LEVIN_METHOD(Tensor, diff, (int64_t n LEVIN_DEFAULT(1), int64_t axis LEVIN_DEFAULT(-1)), n, axis)
LEVIN_METHOD(Tensor, bincount, (const Tensor& weights LEVIN_DEFAULT({}), int64_t minlength LEVIN_DEFAULT(0)), weights,
             minlength)
LEVIN_METHOD(Tensor, histc, (int64_t bins LEVIN_DEFAULT(100), double min LEVIN_DEFAULT(0.0),
                             double max LEVIN_DEFAULT(0.0)), bins, min, max)
LEVIN_METHOD(Tensor, norm, (double p LEVIN_DEFAULT(2.0), const Axes& axes LEVIN_DEFAULT({}),
                            bool keepdim LEVIN_DEFAULT(false)), p, axes, keepdim)
LEVIN_METHOD(Tensor, logsumexp, (const Axes& axes, bool keepdim LEVIN_DEFAULT(false)), axes, keepdim)
LEVIN_ALONG_OF_DTYPE(cumsum)
LEVIN_ALONG_OF_DTYPE(softmax)
LEVIN_ALONG_OF_DTYPE(log_softmax)
LEVIN_METHOD_OF_ONE(max)
LEVIN_METHOD_OF_ONE(min)
LEVIN_METHOD(ValuesIndices, max, (int64_t axis, bool keepdim LEVIN_DEFAULT(false)), axis, keepdim)
LEVIN_METHOD(ValuesIndices, min, (int64_t axis, bool keepdim LEVIN_DEFAULT(false)), axis, keepdim)
LEVIN_METHOD(Tensor, argmax, (std::optional<int64_t> axis LEVIN_DEFAULT(std::nullopt),
                              bool keepdim LEVIN_DEFAULT(false)), axis, keepdim)
LEVIN_METHOD(Tensor, argmin, (std::optional<int64_t> axis LEVIN_DEFAULT(std::nullopt),
                              bool keepdim LEVIN_DEFAULT(false)), axis, keepdim)
LEVIN_METHOD(Tensor, sum_to_size, (const Shape& sizes), sizes)
#undef LEVIN_REDUCTION
#undef LEVIN_REDUCTION_OF_DTYPE
#undef LEVIN_ALONG_OF_DTYPE
#undef LEVIN_VARIANCE

// Views: no copy, unless stated in levin/autograd/ops/view.h.
LEVIN_METHOD_OF_ONE(detach)
LEVIN_METHOD(Tensor, reshape, (const Shape& sizes), sizes)
LEVIN_METHOD(Tensor, view, (const Shape& sizes), sizes)
LEVIN_METHOD(Tensor, flatten, (int64_t start LEVIN_DEFAULT(0), int64_t end LEVIN_DEFAULT(-1)), start, end)
LEVIN_METHOD(Tensor, transpose, (int64_t a, int64_t b), a, b)
LEVIN_METHOD_OF_ONE(t)
LEVIN_METHOD(Tensor, permute, (const Shape& axes), axes)
LEVIN_METHOD(Tensor, narrow, (int64_t axis, int64_t start, int64_t length), axis, start, length)
LEVIN_METHOD(Tensor, slice, (int64_t axis, const Slice& range), axis, range)
LEVIN_METHOD(Tensor, select, (int64_t axis, int64_t index), axis, index)
LEVIN_METHOD(Tensor, expand, (const Shape& sizes), sizes)
LEVIN_METHOD_OF_ONE(squeeze)
LEVIN_METHOD(Tensor, squeeze, (int64_t axis), axis)
LEVIN_METHOD(Tensor, unsqueeze, (int64_t axis), axis)
LEVIN_METHOD(Tensor, unfold, (int64_t axis, int64_t size, int64_t step), axis, size, step)
LEVIN_METHOD(Tensor, as_strided, (const Shape& sizes, const Shape& strides,
                                  std::optional<int64_t> offset LEVIN_DEFAULT(std::nullopt)), sizes, strides, offset)
LEVIN_METHOD(std::vector<Tensor>, chunk, (int64_t chunks, int64_t axis LEVIN_DEFAULT(0)), chunks, axis)
LEVIN_METHOD(std::vector<Tensor>, split, (int64_t size, int64_t axis LEVIN_DEFAULT(0)), size, axis)
LEVIN_METHOD(std::vector<Tensor>, split, (const std::vector<int64_t>& sizes, int64_t axis LEVIN_DEFAULT(0)), sizes,
             axis)
LEVIN_METHOD(std::vector<Tensor>, unbind, (int64_t axis LEVIN_DEFAULT(0)), axis)
LEVIN_METHOD_OF_ONE(ravel)
LEVIN_METHOD_OF_TWO(reshape_as)
LEVIN_METHOD(Tensor, broadcast_to, (const Shape& sizes), sizes)
LEVIN_METHOD(Tensor, unflatten, (int64_t axis, const Shape& sizes), axis, sizes)
LEVIN_METHOD(Tensor, movedim, (const Axes& source, const Axes& destination), source, destination)
LEVIN_METHOD(Tensor, moveaxis, (const Axes& source, const Axes& destination), source, destination)
LEVIN_METHOD(Tensor, swapaxes, (int64_t a, int64_t b), a, b)
LEVIN_METHOD(Tensor, swapdims, (int64_t a, int64_t b), a, b)
LEVIN_METHOD(Tensor, diagonal, (int64_t offset LEVIN_DEFAULT(0), int64_t axis1 LEVIN_DEFAULT(0),
                                int64_t axis2 LEVIN_DEFAULT(1)), offset, axis1, axis2)
LEVIN_METHOD(std::vector<Tensor>, tensor_split, (int64_t sections, int64_t axis LEVIN_DEFAULT(0)), sections, axis)
LEVIN_METHOD(std::vector<Tensor>, tensor_split, (const std::vector<int64_t>& positions, int64_t axis LEVIN_DEFAULT(0)),
             positions, axis)

// Copies, indexing and sorting.
LEVIN_METHOD_OF_ONE(clone)
LEVIN_METHOD_OF_ONE(contiguous)
LEVIN_METHOD(Tensor, gather, (int64_t axis, const Tensor& index), axis, index)
LEVIN_METHOD(Tensor, scatter, (int64_t axis, const Tensor& index, const Tensor& source), axis, index, source)
LEVIN_METHOD(Tensor, scatter_add, (int64_t axis, const Tensor& index, const Tensor& source), axis, index, source)
LEVIN_METHOD(Tensor, index_select, (int64_t axis, const Tensor& index), axis, index)
LEVIN_METHOD(Tensor, index_add, (int64_t axis, const Tensor& index, const Tensor& source), axis, index, source)
LEVIN_METHOD(Tensor, index_put, (std::span<const Index> indices, const Tensor& values,
                                 const IndexPutOptions& options LEVIN_DEFAULT({})), indices, values, options)
LEVIN_METHOD(Tensor, index_put, (std::initializer_list<Index> indices, const Tensor& values,
                                 const IndexPutOptions& options LEVIN_DEFAULT({})), indices, values, options)
LEVIN_METHOD(Tensor, masked_select, (const Tensor& mask), mask)
LEVIN_METHOD_OF_ONE(nonzero)
LEVIN_METHOD(ValuesIndices, sort, (int64_t axis LEVIN_DEFAULT(-1), bool descending LEVIN_DEFAULT(false)), axis,
             descending)
LEVIN_METHOD(Tensor, argsort, (int64_t axis LEVIN_DEFAULT(-1), bool descending LEVIN_DEFAULT(false)), axis, descending)
LEVIN_METHOD(ValuesIndices, topk, (int64_t k, int64_t axis LEVIN_DEFAULT(-1), bool largest LEVIN_DEFAULT(true)), k,
             axis, largest)
LEVIN_METHOD(Tensor, tril, (int64_t diagonal LEVIN_DEFAULT(0)), diagonal)
LEVIN_METHOD(Tensor, triu, (int64_t diagonal LEVIN_DEFAULT(0)), diagonal)
LEVIN_METHOD(Tensor, flip, (const Axes& axes), axes)
LEVIN_METHOD_OF_ONE(fliplr)
LEVIN_METHOD_OF_ONE(flipud)
LEVIN_METHOD(Tensor, rot90, (int64_t k LEVIN_DEFAULT(1)), k)
LEVIN_METHOD(Tensor, roll, (const Shape& shifts, const Axes& axes LEVIN_DEFAULT({})), shifts, axes)
LEVIN_METHOD(Tensor, repeat, (const Shape& counts), counts)
LEVIN_METHOD(Tensor, tile, (const Shape& counts), counts)
LEVIN_METHOD(Tensor, repeat_interleave,
             (int64_t count, std::optional<int64_t> axis LEVIN_DEFAULT(std::nullopt)), count, axis)
LEVIN_METHOD(Tensor, repeat_interleave,
             (const Tensor& counts, std::optional<int64_t> axis LEVIN_DEFAULT(std::nullopt)), counts, axis)
LEVIN_METHOD(Tensor, diag, (int64_t diagonal LEVIN_DEFAULT(0)), diagonal)
LEVIN_METHOD(Tensor, diagflat, (int64_t offset LEVIN_DEFAULT(0)), offset)
LEVIN_METHOD(Tensor, diag_embed, (int64_t offset LEVIN_DEFAULT(0), int64_t axis1 LEVIN_DEFAULT(-2),
                                  int64_t axis2 LEVIN_DEFAULT(-1)), offset, axis1, axis2)
LEVIN_METHOD_OF_ONE(trace)
LEVIN_METHOD(Tensor, take, (const Tensor& index), index)
LEVIN_METHOD(Tensor, take_along_dim,
             (const Tensor& index, std::optional<int64_t> axis LEVIN_DEFAULT(std::nullopt)), index, axis)
LEVIN_METHOD(Tensor, index_fill, (int64_t axis, const Tensor& index, const Scalar& value), axis, index, value)
LEVIN_METHOD(Tensor, index_copy, (int64_t axis, const Tensor& index, const Tensor& source), axis, index, source)
LEVIN_METHOD(Tensor, scatter, (int64_t axis, const Tensor& index, const Scalar& value), axis, index, value)
LEVIN_METHOD(Tensor, scatter_reduce,
             (int64_t axis, const Tensor& index, const Tensor& source, ScatterReduce reduce,
              bool include_self LEVIN_DEFAULT(true)), axis, index, source, reduce, include_self)
LEVIN_METHOD(Tensor, masked_scatter, (const Tensor& mask, const Tensor& source), mask, source)

#undef LEVIN_METHOD_OF_ONE
#undef LEVIN_METHOD_OF_TWO
#undef LEVIN_METHOD_OF_NUMBER
#undef LEVIN_METHOD_OF_BOTH
#undef LEVIN_DEFAULT
#undef LEVIN_METHOD
#undef LEVIN_IN_PLACE_METHOD
#undef LEVIN_EDIT
