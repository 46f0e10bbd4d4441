#pragma once
// All of Levin.

#include <levin/autograd/autograd.h>
#include <levin/core/io.h>
#include <levin/core/parallel.h>
#include <levin/data/data.h>
#include <levin/interop/safetensors.h>
#include <levin/nn/nn.h>
#include <levin/optim/optim.h>
#include <levin/trainer/command_line.h>
#include <levin/trainer/early_stopping.h>
#include <levin/trainer/master_weights.h>
#include <levin/trainer/html_report.h>
#include <levin/trainer/json_lines_logger.h>
#include <levin/trainer/metrics.h>
#include <levin/trainer/model_checkpoint.h>
#include <levin/trainer/model_summary.h>
#include <levin/trainer/progress_bar.h>
#include <levin/trainer/tensorboard_logger.h>
#include <levin/trainer/trainer.h>
