#pragma once
// Includes all of autograd: operations, modes, autocast, the engine, custom functions and gradient checks.

#include <levin/autograd/autocast.h>
#include <levin/autograd/captured_step.h>
#include <levin/autograd/checkpoint.h>
#include <levin/autograd/distributions.h>
#include <levin/autograd/engine.h>
#include <levin/autograd/function.h>
#include <levin/autograd/functional.h>
#include <levin/autograd/gradcheck.h>
#include <levin/autograd/graph_dump.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/node.h>
#include <levin/autograd/ops.h>
#include <levin/autograd/record.h>
#include <levin/autograd/row_gradient.h>
#include <levin/autograd/saved_tensors.h>
