#pragma once
// Includes all headers of the data module.

#include <levin/data/audio.h>
#include <levin/data/augment.h>
#include <levin/data/batch.h>
#include <levin/data/byte_pair.h>
#include <levin/data/cifar.h>
#include <levin/data/collate.h>
#include <levin/data/combined_loader.h>
#include <levin/data/csv.h>
#include <levin/data/dataloader.h>
#include <levin/data/dataset.h>
#include <levin/data/fetch.h>
#include <levin/data/idx.h>
#include <levin/data/image.h>
#include <levin/data/iterable.h>
#include <levin/data/mnist.h>
#include <levin/data/mix.h>
#include <levin/data/npy.h>
#include <levin/data/preload.h>
#include <levin/data/sampler.h>
#include <levin/data/text.h>
#include <levin/data/transforms.h>
