// Options of single strategies, one row each, read where LEVIN_DDP_OPTION and its siblings are defined: the field of
// strategy_config.h, its flag, its key in files and its line of the help come from it.
// This header has no include guard, and undefines the macros.
//
// Columns: the type, the name and the default of the field; the flag, which is also the key in files; its help; and its
// limits, if it has any: .min of an integer, .choices of a text.

#ifndef LEVIN_DDP_OPTION
#define LEVIN_DDP_OPTION(type, name, value, flag, help, ...)
#endif
LEVIN_DDP_OPTION(std::string, comm_hook, "none", "ddp_comm_hook", "ddp: communication hook for gradients",
                 .choices = {"none", "fp16_compress", "bf16_compress", "post_local_sgd"})
LEVIN_DDP_OPTION(std::int64_t, model_averaging_period, 0, "model_averaging_period",
                 "ddp with post_local_sgd: steps between two averages of the weights")
LEVIN_DDP_OPTION(std::int64_t, start_local_sgd_iter, 0, "start_local_sgd_iter",
                 "ddp with post_local_sgd: initial steps with averaged gradients")
LEVIN_DDP_OPTION(bool, post_local_gradient_allreduce, true, "post_local_gradient_allreduce",
                 "ddp with post_local_sgd: average gradients within a machine afterwards, else not at all")
#undef LEVIN_DDP_OPTION

#ifndef LEVIN_HOROVOD_OPTION
#define LEVIN_HOROVOD_OPTION(type, name, value, flag, help, ...)
#endif
LEVIN_HOROVOD_OPTION(bool, scale_lr, true, "scale_lr",
                     "horovod: multiply learning rates, and the base rates of schedulers, by the number of ranks")
LEVIN_HOROVOD_OPTION(std::string, gradient_compression, "none", "gradient_compression",
                     "horovod: compression of gradients", .choices = {"none", "fp16"})
LEVIN_HOROVOD_OPTION(std::optional<double>, fusion_threshold_mb, {}, "fusion_threshold_mb",
                     "horovod: MiB per fused all-reduce; HOROVOD_FUSION_THRESHOLD, or 64")
LEVIN_HOROVOD_OPTION(std::optional<double>, cycle_time_ms, {}, "cycle_time_ms",
                     "horovod: ms between two negotiations; HOROVOD_CYCLE_TIME, or 5")
#undef LEVIN_HOROVOD_OPTION

#ifndef LEVIN_BAGUA_OPTION
#define LEVIN_BAGUA_OPTION(type, name, value, flag, help, ...)
#endif
LEVIN_BAGUA_OPTION(std::string, algorithm, "gradient_allreduce", "bagua_algorithm",
                   "bagua: ranks average gradients exactly (gradient_allreduce) or in 8 bits (bytegrad), Adam's "
                   "momentum in 8 bits (qadam), or weights: with their peers (decentralized), in 8 bits with two "
                   "neighbours (low_precision_decentralized), in the background (async)",
                   .choices = {"gradient_allreduce", "bytegrad", "decentralized", "low_precision_decentralized",
                               "qadam", "async"})
LEVIN_BAGUA_OPTION(std::string, peers, "all", "bagua_peers", "bagua decentralized: which ranks average weights",
                   .choices = {"all", "shift_one"})
LEVIN_BAGUA_OPTION(std::string, scale_lr, "none", "bagua_scale_lr",
                   "bagua with local gradients: multiply rates by the square root of the number of ranks, for Adam",
                   .choices = {"none", "sqrt"})
LEVIN_BAGUA_OPTION(std::int64_t, warmup_steps, 0, "bagua_warmup_steps",
                   "bagua async: initial steps with averaged gradients")
LEVIN_BAGUA_OPTION(std::int64_t, sync_interval_ms, 500, "bagua_sync_interval_ms",
                   "bagua async: ms between two averages of the weights")
#undef LEVIN_BAGUA_OPTION

#ifndef LEVIN_FSDP_OPTION
#define LEVIN_FSDP_OPTION(type, name, value, flag, help, ...)
#endif
LEVIN_FSDP_OPTION(std::int64_t, unit_size, 100'000, "fsdp_unit_size",
                  "fsdp: minimum number of elements of a module that forms its own unit", .min = 1)
// Sharded checkpoints are written to a folder that all ranks share, never asynchronously. Any strategy reads both.
LEVIN_FSDP_OPTION(std::string, state_dict_type, "full", "fsdp_state_dict_type",
                  "fsdp, zero_1, zero_2: full checkpoints by rank 0, or sharded ones by each rank",
                  .choices = {"full", "sharded"})
#undef LEVIN_FSDP_OPTION

#ifndef LEVIN_PIPELINE_OPTION
#define LEVIN_PIPELINE_OPTION(type, name, value, flag, help, ...)
#endif
LEVIN_PIPELINE_OPTION(std::int64_t, micro_batches, 4, "pipeline_micro_batches", "pipeline: micro-batches per batch",
                      .min = 1)
LEVIN_PIPELINE_OPTION(std::string, balance, {}, "pipeline_balance",
                      "pipeline: layers of each stage, as 2,2; empty: balanced by parameters")
#undef LEVIN_PIPELINE_OPTION
