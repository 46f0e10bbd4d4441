#pragma once
// Includes all headers of optim.

#include <levin/optim/adadelta.h>
#include <levin/optim/adagrad.h>
#include <levin/optim/adam.h>
#include <levin/optim/adamax.h>
#include <levin/optim/asgd.h>
#include <levin/optim/clip.h>
#include <levin/optim/composed_optimizer.h>
#include <levin/optim/composed_schedulers.h>
#include <levin/optim/fused_optimizer.h>
#include <levin/optim/grad_scaler.h>
#include <levin/optim/lamb.h>
#include <levin/optim/lbfgs.h>
#include <levin/optim/lion.h>
#include <levin/optim/muon.h>
#include <levin/optim/nadam.h>
#include <levin/optim/optimizer.h>
#include <levin/optim/qadam.h>
#include <levin/optim/radam.h>
#include <levin/optim/rmsprop.h>
#include <levin/optim/rprop.h>
#include <levin/optim/scheduler.h>
#include <levin/optim/sgd.h>
#include <levin/optim/sparse_adam.h>
