/* A client of the C interface, compiled as C99: compares a forward pass with the one of the C++ test that wrote the
 * files, trains until the loss has fallen, saves and loads weights, and makes mistakes. Usage: client FOLDER */
#include <levin/c_api/levin.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 96
#define FEATURES 6
#define CLASSES 3

static int failures = 0;

static void check(int ok, const char* what) {
  if (ok) return;
  printf("FAILED: %s (last error: %s)\n", what, levin_last_error());
  ++failures;
}

static void expect(levin_status status, levin_status expected, const char* sentence) {
  if (status == expected && strstr(levin_last_error(), sentence) != NULL) return;
  printf("FAILED: status %d instead of %d, \"%s\" instead of \"%s\"\n", (int)status, (int)expected, levin_last_error(),
         sentence);
  ++failures;
}

static const char* in_folder(const char* folder, const char* name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void read_floats(const char* path, float* values, size_t count) {
  FILE* file = fopen(path, "rb");
  check(file != NULL && fread(values, sizeof *values, count, file) == count, path);
  if (file != NULL) fclose(file);
}

/* Runs forward and returns the largest difference to `expected`, or infinity. */
static float difference(levin_model* model, levin_array* x, const float* expected) {
  levin_outputs* outputs = NULL;
  levin_array y;
  float largest = 0;
  int i;
  check(levin_model_forward(model, x, 1, &outputs) == LEVIN_OK, "forward");
  check(levin_outputs_count(outputs) == 1 && levin_outputs_get(outputs, 0, &y) == LEVIN_OK, "one output");
  if (outputs == NULL) return HUGE_VALF;
  check(y.dtype == LEVIN_FLOAT32 && y.ndim == 2 && y.shape[0] == ROWS && y.shape[1] == CLASSES, "the output's shape");
  for (i = 0; i < ROWS * CLASSES; ++i) {
    const float d = fabsf(((const float*)y.data)[i] - expected[i]);
    if (!(d <= largest)) largest = d;
  }
  levin_outputs_free(outputs);
  return largest;
}

static void make_mistakes(const char* folder, levin_model* model, levin_array* x) {
  const int64_t wrong[2] = {ROWS, FEATURES + 1}, huge[2] = {INT64_MAX, 2};
  float values[ROWS * (FEATURES + 1)] = {0};
  levin_array bad = *x;
  levin_outputs* outputs = (levin_outputs*)x;
  levin_model* none = (levin_model*)x;
  levin_trainer* trainer = NULL;
  expect(levin_model_load(in_folder(folder, "absent.onnx"), &none), LEVIN_IO_ERROR, "absent.onnx");
  check(none == NULL, "a model that was not loaded is null");
  expect(levin_model_load(in_folder(folder, "x.bin"), &none), LEVIN_IO_ERROR, "x.bin");
  expect(levin_model_load(NULL, &none), LEVIN_INVALID_ARGUMENT, "[levin_model_load] path is null");
  expect(levin_model_load("net.onnx", NULL), LEVIN_INVALID_ARGUMENT, "[levin_model_load] model is null");
  bad.shape = wrong;
  bad.data = values;
  expect(levin_model_forward(model, &bad, 1, &outputs), LEVIN_SHAPE_ERROR, "(96, 7)");
  check(outputs == NULL, "outputs that were not computed are null");
  bad.shape = huge;
  expect(levin_model_forward(model, &bad, 1, &outputs), LEVIN_INVALID_ARGUMENT, "size 0 of input 0 is 92233720368");
  bad = *x;
  bad.dtype = (levin_dtype)77;
  expect(levin_model_forward(model, &bad, 1, &outputs), LEVIN_INVALID_ARGUMENT, "the dtype of input 0 is 77");
  bad = *x;
  bad.ndim = 9;
  expect(levin_model_forward(model, &bad, 1, &outputs), LEVIN_INVALID_ARGUMENT, "input 0 has 9 dimensions");
  bad = *x;
  bad.data = NULL;
  expect(levin_model_forward(model, &bad, 1, &outputs), LEVIN_INVALID_ARGUMENT, "input 0.data is null");
  expect(levin_model_forward(model, NULL, 1, &outputs), LEVIN_INVALID_ARGUMENT, "inputs is null");
  expect(levin_model_forward(NULL, x, 1, &outputs), LEVIN_INVALID_ARGUMENT, "model is null");
  expect(levin_trainer_create(model, "hinge", "sgd", 0.1, &trainer), LEVIN_INVALID_ARGUMENT, "\"hinge\" is no loss");
  expect(levin_trainer_create(model, "mse", "lion", 0.1, &trainer), LEVIN_INVALID_ARGUMENT, "\"lion\" is no optimizer");
  expect(levin_trainer_create(model, "mse", "sgd", -1, &trainer), LEVIN_INVALID_ARGUMENT, "learning_rate is -1");
  expect(levin_set_num_threads(0), LEVIN_INVALID_ARGUMENT, "0");
  expect(levin_model_load_weights(model, in_folder(folder, "other.safetensors")), LEVIN_STATE_ERROR,
         "Nothing was loaded");
  levin_model_free(NULL);
  levin_outputs_free(NULL);
  levin_trainer_free(NULL);
}

int main(int argc, char** argv) {
  static float pixels[ROWS * FEATURES], expected[ROWS * CLASSES];
  static int64_t classes[ROWS];
  const int64_t shape[2] = {ROWS, FEATURES}, count[1] = {ROWS};
  levin_array x = {pixels, LEVIN_FLOAT32, 2, NULL}, target = {classes, LEVIN_INT64, 1, NULL};
  levin_model *model = NULL, *second = NULL;
  levin_trainer* trainer = NULL;
  double loss = 0, first = 0;
  float trained[ROWS * CLASSES];
  int i;
  if (argc != 2) return 2;
  x.shape = shape;
  target.shape = count;
  read_floats(in_folder(argv[1], "x.bin"), pixels, ROWS * FEATURES);
  read_floats(in_folder(argv[1], "y.bin"), expected, ROWS * CLASSES);
  for (i = 0; i < ROWS; ++i) classes[i] = pixels[i * FEATURES] > 0.3f ? 2 : pixels[i * FEATURES + 1] > 0 ? 1 : 0;

  check(strcmp(levin_last_error(), "") == 0, "no error at first");
  check(levin_manual_seed(1) == LEVIN_OK && levin_set_num_threads(2) == LEVIN_OK, "settings");
  check(levin_num_threads() == 2, "the number of threads");
  check(levin_model_load(in_folder(argv[1], "net.onnx"), &model) == LEVIN_OK, "loading the model");
  if (model == NULL) return 1;
  check(levin_model_parameter_count(model) == FEATURES * 16 + 16 + 16 * CLASSES + CLASSES, "the number of parameters");
  check(difference(model, &x, expected) <= 1e-5f, "outputs are those of C++");

  check(levin_trainer_create(model, "cross_entropy", "adamw", 0.02, &trainer) == LEVIN_OK, "creating a trainer");
  for (i = 0; i < 120; ++i) {
    check(levin_trainer_step(trainer, &x, 1, &target, &loss) == LEVIN_OK, "a step");
    if (i == 0) first = loss;
  }
  check(loss < 0.3 * first, "the loss falls to less than a third");
  check(difference(model, &x, expected) > 0.1f, "training changed the outputs");

  check(levin_model_save_weights(model, in_folder(argv[1], "trained.safetensors")) == LEVIN_OK, "saving weights");
  check(levin_trainer_set_learning_rate(trainer, 0) == LEVIN_OK, "setting the learning rate");
  memset(trained, 0, sizeof trained);
  {
    levin_outputs* outputs = NULL;
    levin_array y;
    check(levin_model_forward(model, &x, 1, &outputs) == LEVIN_OK, "forward");
    check(levin_outputs_get(outputs, 0, &y) == LEVIN_OK, "an output");
    memcpy(trained, y.data, sizeof trained);
    expect(levin_outputs_get(outputs, 1, &y), LEVIN_INVALID_ARGUMENT, "output 1 is asked for, and there are 1");
    levin_outputs_free(outputs);
  }
  levin_trainer_step(trainer, &x, 1, &target, NULL);
  check(difference(model, &x, trained) == 0, "a step with a learning rate of 0 changes nothing");
  check(levin_model_load(in_folder(argv[1], "net.onnx"), &second) == LEVIN_OK, "loading a second model");
  check(difference(second, &x, expected) <= 1e-5f, "the second model is not trained");
  check(levin_model_load_weights(second, in_folder(argv[1], "trained.safetensors")) == LEVIN_OK, "loading weights");
  check(difference(second, &x, trained) == 0, "loaded weights give the trained outputs");
  make_mistakes(argv[1], model, &x);
  classes[3] = CLASSES;
  expect(levin_trainer_step(trainer, &x, 1, &target, NULL), LEVIN_INVALID_ARGUMENT, "3");
  check(difference(model, &x, trained) == 0, "a step that fails changes nothing");
  levin_model_free(model); /* the trainer keeps it alive */
  classes[3] = 0;
  check(levin_trainer_step(trainer, &x, 1, &target, &loss) == LEVIN_OK, "a step after the handle was freed");
  levin_trainer_free(trainer);
  levin_model_free(second);
  printf("c: version %s, loss %.3f to %.3f, %d failures\n", levin_version(), first, loss, failures);
  return failures == 0 ? 0 : 1;
}
