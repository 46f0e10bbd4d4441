/* Inference and training from C and from languages that call C.
 *
 *   levin_model* model;
 *   levin_outputs* outputs;
 *   int64_t shape[] = {1, 1, 28, 28};
 *   levin_array x = {pixels, LEVIN_FLOAT32, 4, shape}, y;
 *   if (levin_model_load("net.onnx", &model) != LEVIN_OK) puts(levin_last_error());
 *   levin_model_forward(model, &x, 1, &outputs);
 *   levin_outputs_get(outputs, 0, &y);
 *
 * Every function that can fail returns a status; levin_last_error() then has the sentence that says what was wrong. No
 * exception leaves the library. On an error the results are null or unchanged. Functions may be called from several
 * threads, but not with the same handle at the same time. Handles are freed by the function of their type, which takes
 * null too. docs/c_api.md has whole programs in C and Python. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LEVIN_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef enum levin_status {
  LEVIN_OK = 0,
  LEVIN_INVALID_ARGUMENT = 1, /**< a null pointer, an unknown name, a number out of range */
  LEVIN_SHAPE_ERROR = 2,      /**< sizes do not fit the operation that the message names */
  LEVIN_DTYPE_ERROR = 3,      /**< an element type does not fit */
  LEVIN_IO_ERROR = 4,         /**< a file is missing, damaged or cannot be written */
  LEVIN_STATE_ERROR = 5,      /**< weights are not those of the model */
  LEVIN_GRADIENT_ERROR = 6,   /**< a part of the model has no derivative */
  LEVIN_OUT_OF_MEMORY = 7,
  LEVIN_INTERNAL_ERROR = 8 /**< any other */
} levin_status;

typedef enum levin_dtype {
  LEVIN_FLOAT32 = 0,
  LEVIN_FLOAT64 = 1,
  LEVIN_INT64 = 2,
  LEVIN_INT32 = 3,
  LEVIN_INT8 = 4,
  LEVIN_UINT8 = 5,
  LEVIN_BOOL = 6 /**< one byte, 0 or 1 */
} levin_dtype;

/** Values in row-major order without gaps: the sizes are shape[0..ndim), at most eight. The library reads arrays that
 * it is given during the call only. */
typedef struct levin_array {
  void* data;           /**< the first value */
  levin_dtype dtype;    /**< type of the values */
  int32_t ndim;         /**< number of sizes; 0 for a single value */
  const int64_t* shape; /**< (ndim) sizes */
} levin_array;

typedef struct levin_model levin_model;
typedef struct levin_outputs levin_outputs;
typedef struct levin_trainer levin_trainer;

/** Returns the library's version, such as "0.1.0". */
LEVIN_API const char* levin_version(void);
/** Returns the sentence of this thread's last error, empty if there was none; valid until its next error. */
LEVIN_API const char* levin_last_error(void);
/** Sets the number of threads that compute in this process, 1 or more; by default one a core, or OMP_NUM_THREADS. */
LEVIN_API levin_status levin_set_num_threads(int32_t threads);
LEVIN_API int32_t levin_num_threads(void);
/** Seeds random numbers, such as those of dropout. */
LEVIN_API levin_status levin_manual_seed(uint64_t seed);

/** Loads an ONNX file. */
LEVIN_API levin_status levin_model_load(const char* path, levin_model** model);
LEVIN_API void levin_model_free(levin_model* model);
/** Writes the parameters and buffers as a safetensors file, or reads them from one. Names, shapes and types must be
 * those of the model; else nothing is changed. */
LEVIN_API levin_status levin_model_save_weights(const levin_model* model, const char* path);
LEVIN_API levin_status levin_model_load_weights(levin_model* model, const char* path);
/** Returns the number of elements of all parameters; 0 for null. */
LEVIN_API int64_t levin_model_parameter_count(const levin_model* model);
/** Computes the outputs in evaluation mode, without gradients. */
LEVIN_API levin_status levin_model_forward(levin_model* model, const levin_array* inputs, size_t input_count,
                                           levin_outputs** outputs);

/** Returns the number of outputs; 0 for null. */
LEVIN_API size_t levin_outputs_count(const levin_outputs* outputs);
/** Describes an output. Its data and shape stay valid until the outputs are freed. */
LEVIN_API levin_status levin_outputs_get(const levin_outputs* outputs, size_t index, levin_array* array);
LEVIN_API void levin_outputs_free(levin_outputs* outputs);

/** Prepares training of a model with one output. The loss is "cross_entropy" (logits (B, C, ...) and int64 classes
 * (B, ...)), "mse", "l1" or "bce_with_logits" (targets of the output's shape), averaged over all elements; the
 * optimizer is "sgd", "adam" or "adamw", with PyTorch's defaults and this learning rate. The trainer keeps the model
 * alive. */
LEVIN_API levin_status levin_trainer_create(levin_model* model, const char* loss, const char* optimizer,
                                            double learning_rate, levin_trainer** trainer);
/** Runs forward, backward and one step of the optimizer in training mode; `loss` gets the loss before the step, and may
 * be null. If it fails, the parameters are unchanged. */
LEVIN_API levin_status levin_trainer_step(levin_trainer* trainer, const levin_array* inputs, size_t input_count,
                                          const levin_array* target, double* loss);
LEVIN_API levin_status levin_trainer_set_learning_rate(levin_trainer* trainer, double learning_rate);
LEVIN_API void levin_trainer_free(levin_trainer* trainer);

#ifdef __cplusplus
}
#endif
