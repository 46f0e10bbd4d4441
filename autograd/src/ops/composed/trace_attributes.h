#pragma once
// Attributes that several operations announce while traced.

#include <levin/autograd/trace.h>

#define LEVIN_CONV_ATTRIBUTES(o) \
  { {"stride", (o).stride}, {"padding", (o).padding}, {"dilation", (o).dilation}, {"groups", (o).groups} }

#define LEVIN_CONV_TRANSPOSE_ATTRIBUTES(o)                                                                \
  {                                                                                                       \
    {"stride", (o).stride}, {"padding", (o).padding}, {"output_padding", (o).output_padding},             \
        {"dilation", (o).dilation}, {"groups", (o).groups}                                                \
  }

#define LEVIN_AVERAGE_ATTRIBUTES(kernel, o)                                                               \
  {                                                                                                       \
    {"kernel", kernel}, {"stride", (o).stride.value_or(kernel)}, {"padding", (o).padding},                \
        {"ceil_mode", (o).ceil_mode}, {"count_include_pad", (o).count_include_pad}                        \
  }

#define LEVIN_MAXIMUM_ATTRIBUTES(kernel, o)                                                               \
  {                                                                                                       \
    {"kernel", kernel}, {"stride", (o).stride.value_or(kernel)}, {"padding", (o).padding},                \
        {"dilation", (o).dilation}, {"ceil_mode", (o).ceil_mode}                                          \
  }
