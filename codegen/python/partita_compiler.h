/* The C interface of libpartita.so: the compiler, for a process that has a graph as data. The Python package calls it;
 * codegen/python/README.md describes the JSON of a graph.
 *
 * Functions that can fail return PARTITA_OK or another status, and partita_compiler_last_error() says what was wrong;
 * no exception leaves the library, and no fault of it ends the process. A graph may be used by several threads: its
 * runs wait for one another. Different graphs run at the same time.
 */
#ifndef PARTITA_COMPILER_H
#define PARTITA_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PARTITA_COMPILER_ABI 1
#define PARTITA_RANDOM_STATE 5056

/* The exit codes of the program `partita`. */
enum {
  PARTITA_COMPILER_OK = 0,
  PARTITA_COMPILER_BAD_INPUT = 2,   /* a graph, an input or a size is wrong */
  PARTITA_COMPILER_UNSUPPORTED = 3, /* an operator, a device or a dtype that the compiler does not have */
  PARTITA_COMPILER_INTERNAL = 4     /* a fault of Partita */
};

typedef struct partita_graph partita_graph;
typedef struct partita_call partita_call;

/* What was wrong; texts without a value are empty. They live until the thread's next call that fails. */
typedef struct {
  int32_t status;
  const char* code;    /* stable and dotted: "ops.unknown" */
  const char* message; /* "what; what to do" */
  const char* graph;   /* the graph's name */
  const char* node;    /* the node's name in the graph */
  const char* origin;  /* "FILE:LINE in FUNCTION" of the user's program */
  const char* line;    /* all of it in one line, with the pass where one failed */
} partita_error;

/* A tensor in the memory of the CPU, of whoever made it. A number is a tensor of rank 0 and dtype int64, bool or
 * float64. dtypes are those of partita_model.h: 0 no value (None), then bool, uint8, int8, uint16, int16, uint32,
 * int32, uint64, int64, float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64, complex32, complex64,
 * complex128. */
typedef struct {
  void* data;
  int32_t dtype;
  int32_t rank;
  const int64_t* sizes;
  const int64_t* strides; /* in elements; NULL: row-major */
  void* owner;            /* set in results that were allocated: what partita_graph_release() frees */
  int32_t input;          /* set in results: the input whose memory the result lies in; -1: none */
  int32_t is_number;      /* set in results: 1 for a number, which is no tensor */
} partita_value;

/* PARTITA_COMPILER_ABI of the library, and its version: "0.1.0". */
int partita_compiler_abi(void);
const char* partita_compiler_version(void);
/* Of the last call on this thread that failed. Never NULL. */
const partita_error* partita_compiler_last_error(void);

/* 1 when the compiler has the operator ("aten.add.Tensor"), else 0. */
int partita_compiler_knows(const char* op);

/* Looks for calls that the compiler refuses in a graph as partita_graph_compile() takes it. `refused` gets JSON,
 * [{"node": ..., "op": ..., "why": ...}], which partita_compiler_free_text() frees. The status is of the graph's own
 * faults, not of what is refused. */
int partita_compiler_check(const char* json, size_t size, const partita_value* attributes, size_t attribute_count,
                           char** refused);
void partita_compiler_free_text(char* text);

/* Compiles a graph of ATen operators, functional but for copy_ into its inputs. `attributes`: the tensors that the
 * JSON's "attributes" names, in order; they must live as long as the graph, and their values must not change.
 * A graph with sizes that are symbols gets code when it is run. */
int partita_graph_compile(const char* json, size_t size, const partita_value* attributes, size_t attribute_count,
                          partita_graph** graph);
void partita_graph_free(partita_graph* graph);
/* 1 when it draws random numbers. They are those that PyTorch's operators draw on an x86-64 CPU with AVX2. */
int partita_graph_draws(const partita_graph* graph);
/* The guards of the code that there is, and how often it was compiled, as JSON:
 * {"compilations": [{"number", "kind", "sizes", "guards", "why_not"}]}. NULL on failure; partita_compiler_free_text()
 * frees it. */
char* partita_graph_report(partita_graph* graph);

/* Runs a graph. Inputs of None may be anything. A result whose `data` is NULL gets memory of the library's, or of the
 * input that it is a view of, until partita_graph_release(). Otherwise it is written to the caller's memory: then
 * dtype, sizes and strides must be set and be those of the result. Inputs that the graph copies to are written.
 * `random_state`: for a graph that draws random numbers, the bytes of torch.get_rng_state(), PARTITA_RANDOM_STATE of
 * them, which become those after the run; NULL for others. */
int partita_graph_run(partita_graph* graph, const partita_value* inputs, size_t input_count, partita_value* outputs,
                      size_t output_count, void* random_state);
void partita_graph_release(partita_value* outputs, size_t output_count);

/* A call that will come again with tensors of the same dtypes, sizes and strides, and the same numbers. `outputs`:
 * those whose `data` is not NULL will be given at each run, the others are not wanted. What the structs point to is
 * copied. */
int partita_call_prepare(partita_graph* graph, const partita_value* inputs, size_t input_count,
                         const partita_value* outputs, size_t output_count, partita_call** call);
void partita_call_free(partita_call* call);
/* Runs it. `inputs`: the address of each input that is a tensor; `outputs`: of each result that is wanted, in order. */
int partita_call_run(partita_call* call, const uint64_t* inputs, const uint64_t* outputs, void* random_state);

/* The program `partita` without its window: what main() gets, and the exit code. */
int partita_compiler_main(int argc, char** argv);

#ifdef __cplusplus
}
#endif

#endif
