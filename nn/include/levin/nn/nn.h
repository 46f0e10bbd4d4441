#pragma once
// Includes all headers of nn.

#include <levin/nn/activation.h>
#include <levin/nn/container.h>
#include <levin/nn/functional_call.h>
#include <levin/nn/init.h>
#include <levin/nn/layer.h>
#include <levin/nn/layers.h>
#include <levin/nn/loss.h>
#include <levin/nn/module.h>
#include <levin/nn/parametrize.h>
#include <levin/nn/quantization.h>
#include <levin/nn/recurrent.h>
#include <levin/nn/transformer.h>
#include <levin/nn/utils.h>
