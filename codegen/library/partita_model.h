/* The C interface of a library that `partita compile` makes.
 *
 * Functions that can fail return PARTITA_OK or another status, and partita_last_error() says what was wrong; no
 * exception leaves the library. A model may be used by several threads: its runs wait for one another. Different models
 * run at the same time. What a partita_info points to lives as long as its model.
 */
#ifndef PARTITA_MODEL_H
#define PARTITA_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PARTITA_ABI 1

/* The exit codes of the program `partita`. */
enum {
  PARTITA_OK = 0,
  PARTITA_BAD_INPUT = 2,   /* an input, a size or a file does not fit the model */
  PARTITA_UNSUPPORTED = 3, /* the machine lacks something, such as oneDNN */
  PARTITA_INTERNAL = 4     /* a fault of Partita */
};

/* Complex numbers are pairs of (real, imaginary); bfloat16 and the float8 types are bits. */
enum {
  PARTITA_NONE = 0, /* no value: a result that is None, a gradient that is not computed */
  PARTITA_BOOL,
  PARTITA_UINT8,
  PARTITA_INT8,
  PARTITA_UINT16,
  PARTITA_INT16,
  PARTITA_UINT32,
  PARTITA_INT32,
  PARTITA_UINT64,
  PARTITA_INT64,
  PARTITA_FLOAT8_E4M3FN,
  PARTITA_FLOAT8_E5M2,
  PARTITA_FLOAT16,
  PARTITA_BFLOAT16,
  PARTITA_FLOAT32,
  PARTITA_FLOAT64,
  PARTITA_COMPLEX32,
  PARTITA_COMPLEX64,
  PARTITA_COMPLEX128
};

typedef struct partita_model partita_model;
typedef struct partita_saved partita_saved;

/* A tensor in the memory of the CPU. A number is a tensor of rank 0. */
typedef struct {
  void* data;
  int32_t dtype;
  int32_t rank;
  const int64_t* sizes;
  const int64_t* strides; /* in elements; NULL: row-major */
  void* owner;            /* set in results: what partita_release() frees; NULL in inputs */
} partita_tensor;

/* What is known of an input or a result before a run. */
typedef struct {
  const char* name;
  int32_t dtype;
  int32_t rank;
  const int64_t* sizes;          /* -1: it is known in a run only */
  const char* const* size_names; /* by dimension: NULL, or the expression of a size of -1: "s0", "2*s0" */
  const int64_t* strides;        /* in elements; -1 as in sizes. Inputs of other strides are copied. */
} partita_info;

/* PARTITA_ABI of the library. */
int partita_abi(void);
/* Of the last call on this thread that failed, until the next one that fails; never NULL. */
const char* partita_last_error(void);

/* Loads the model. `weights`: a safetensors file with the tensors that partita_weight_info() names; NULL: those in the
 * library or, for a library made with --weights beside, the file that was written beside it. NULL on failure. The
 * environment variable PARTITA_ISA (baseline, avx2, avx512) limits which instructions it uses. */
partita_model* partita_load(const char* weights);
void partita_free(partita_model* model);
/* The instructions it uses: "baseline", "avx2" or "avx512". */
const char* partita_isa(const partita_model* model);
/* How many threads runs may use; at first as many as it was compiled for. */
int partita_set_threads(partita_model* model, int threads);

size_t partita_input_count(const partita_model* model);
size_t partita_output_count(const partita_model* model);
size_t partita_weight_count(const partita_model* model);
size_t partita_guard_count(const partita_model* model);
int partita_input_info(const partita_model* model, size_t index, partita_info* info);
int partita_output_info(const partita_model* model, size_t index, partita_info* info);
int partita_weight_info(const partita_model* model, size_t index, partita_info* info);
/* The condition on sizes, as text: "s0 <= 1024"; NULL beyond the last. */
const char* partita_guard(const partita_model* model, size_t index);
/* The weight itself, which may be written between runs of a model that was compiled with --train. */
int partita_weight(partita_model* model, size_t index, partita_tensor* weight);

/* Runs the model. Results whose `data` is NULL are allocated; partita_release() frees them. Others must have the dtype
 * and sizes of the result, which is copied there. Inputs that the model writes to are written. */
int partita_run(partita_model* model, const partita_tensor* inputs, size_t input_count, partita_tensor* outputs,
                size_t output_count);
void partita_release(partita_tensor* results, size_t count);

/* Of a model that was compiled with --train: 1, else 0. */
int partita_trains(const partita_model* model);
/* Runs the forward and keeps what the backward needs in *saved, until partita_free_saved(). */
int partita_forward(partita_model* model, const partita_tensor* inputs, size_t input_count, partita_tensor* outputs,
                    size_t output_count, partita_saved** saved);
/* The gradients that the backward computes: their names are "grad.NAME" of a weight, "grad.input.N" of input N. */
size_t partita_gradient_count(const partita_model* model);
int partita_gradient_info(const partita_model* model, size_t index, partita_info* info);
/* Runs the backward. tangents: one for each output; `data` NULL counts as zeros, or as one for an output that is a
 * single number when all are NULL. `saved` may be used once only. */
int partita_backward(partita_model* model, partita_saved* saved, const partita_tensor* tangents, size_t output_count,
                     partita_tensor* gradients, size_t gradient_count);
void partita_free_saved(partita_saved* saved);

#ifdef __cplusplus
}
#endif

#endif
