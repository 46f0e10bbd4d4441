#pragma once
// Replaces NCCL's header.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <levin/emulator/nccl_api.h>
