#pragma once
// Everything of the data module.

#include <levin/data/batch.h>
#include <levin/data/dataloader.h>
#include <levin/data/dataset.h>
#include <levin/data/idx.h>
#include <levin/data/mnist.h>
#include <levin/data/sampler.h>
#include <levin/data/transforms.h>
