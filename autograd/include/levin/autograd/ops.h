#pragma once
// All operations.

#include <levin/autograd/ops/complex.h>
#include <levin/autograd/ops/conv.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/image.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/linalg.h>
#include <levin/autograd/ops/loss.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/norm.h>
#include <levin/autograd/ops/pool.h>
#include <levin/autograd/ops/products.h>
#include <levin/autograd/ops/quantized.h>
#include <levin/autograd/ops/random.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/spectral.h>
#include <levin/autograd/ops/statistics.h>
#include <levin/autograd/ops/view.h>
