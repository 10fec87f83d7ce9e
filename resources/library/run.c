/* Runs a library that `partita compile` made, on inputs of ones:
 *
 *   partita compile resources/samples/mlp/program.pt2 -o model.so
 *   cc -I. resources/library/run.c -o run ./model.so
 *   ./run [SIZE]           SIZE: what sizes that may change are in this run, 16 without it
 */
#include "partita_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int item_bytes[] = {0, 1, 1, 1, 2, 2, 4, 4, 8, 8, 1, 1, 2, 2, 4, 8, 4, 8, 16};

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, partita_last_error());
  return 1;
}

static void print_sizes(const char* name, int rank, const int64_t* sizes) {
  printf("%s [", name);
  for (int d = 0; d < rank; ++d) printf("%s%lld", d ? ", " : "", (long long)sizes[d]);
  printf("]");
}

/* A tensor of ones for an input. The caller frees its data and sizes. */
static partita_tensor ones(const partita_info* info, int64_t size) {
  partita_tensor t = {0};
  int64_t* sizes = malloc((size_t)(info->rank + 1) * sizeof *sizes);
  size_t count = 1;
  for (int d = 0; d < info->rank; ++d) {
    sizes[d] = info->sizes[d] < 0 ? size : info->sizes[d];
    count *= (size_t)sizes[d];
  }
  t.dtype = info->dtype;
  t.rank = info->rank;
  t.sizes = sizes;
  t.data = calloc(count ? count : 1, (size_t)item_bytes[info->dtype]);
  for (size_t i = 0; i < count; ++i) {
    if (t.dtype == PARTITA_FLOAT32) ((float*)t.data)[i] = 1;
    if (t.dtype == PARTITA_FLOAT64) ((double*)t.data)[i] = 1;
    if (t.dtype == PARTITA_INT64) ((int64_t*)t.data)[i] = 1;
    if (t.dtype == PARTITA_INT32) ((int32_t*)t.data)[i] = 1;
  }
  return t;
}

int main(int argc, char** argv) {
  const int64_t size = argc > 1 ? atoll(argv[1]) : 16;
  if (partita_abi() != PARTITA_ABI) return fprintf(stderr, "another version of the interface\n"), 1;
  partita_model* model = partita_load(NULL);
  if (!model) return failed("partita_load");
  printf("instructions %s\n", partita_isa(model));
  for (size_t i = 0; partita_guard(model, i); ++i) printf("guard %s\n", partita_guard(model, i));

  const size_t inputs = partita_input_count(model), outputs = partita_output_count(model);
  partita_tensor* in = calloc(inputs + 1, sizeof *in);
  partita_tensor* out = calloc(outputs + 1, sizeof *out);
  for (size_t i = 0; i < inputs; ++i) {
    partita_info info;
    if (partita_input_info(model, i, &info)) return failed("partita_input_info");
    in[i] = ones(&info, size);
    print_sizes(info.name, in[i].rank, in[i].sizes);
    printf("\n");
  }
  int status = 0;
  if (partita_run(model, in, inputs, out, outputs)) {
    status = failed("partita_run");
  } else {
    for (size_t i = 0; i < outputs; ++i) {
      partita_info info;
      if (partita_output_info(model, i, &info)) return failed("partita_output_info");
      print_sizes(info.name, out[i].rank, out[i].sizes);
      if (out[i].dtype == PARTITA_FLOAT32 && out[i].data) printf(" %.6g ...", *(float*)out[i].data);
      printf("\n");
    }
    partita_release(out, outputs);
  }
  for (size_t i = 0; i < inputs; ++i) {
    free(in[i].data);
    free((void*)in[i].sizes);
  }
  free(in);
  free(out);
  partita_free(model);
  return status;
}
