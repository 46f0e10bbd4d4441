#pragma once
// Includes all of autograd: operations, modes, the engine, custom functions and gradient checks.

#include <levin/autograd/engine.h>
#include <levin/autograd/function.h>
#include <levin/autograd/gradcheck.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/node.h>
#include <levin/autograd/ops.h>
#include <levin/autograd/record.h>
