#pragma once
// Training on several processes and machines.

#include <levin/distributed/bagua.h>
#include <levin/distributed/comm_hooks.h>
#include <levin/distributed/data_parallel.h>
#include <levin/distributed/ddp.h>
#include <levin/distributed/error.h>
#include <levin/distributed/fsdp.h>
#include <levin/distributed/horovod.h>
#include <levin/distributed/launcher.h>
#include <levin/distributed/model_averaging.h>
#include <levin/distributed/pipeline.h>
#include <levin/distributed/process_group.h>
#include <levin/distributed/reduce_op.h>
#include <levin/distributed/rendezvous.h>
#include <levin/distributed/shard.h>
#include <levin/distributed/store.h>
#include <levin/distributed/sync_batch_norm.h>
#include <levin/distributed/zero.h>
