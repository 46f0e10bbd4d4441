#pragma once
// The whole of autograd: operations, modes, engine, functions of one's own, checks.

#include <levin/autograd/engine.h>
#include <levin/autograd/function.h>
#include <levin/autograd/gradcheck.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/node.h>
#include <levin/autograd/ops.h>
#include <levin/autograd/record.h>
