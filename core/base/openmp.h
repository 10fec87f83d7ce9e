#pragma once
// OpenMP's functions, as oneDNN calls them, too. In programs they are those of openmp.cpp, in libraries of
// `partita compile` libgomp's.

extern "C" {
/// Runs work(data) once in each of `threads` threads, at most; 0 means omp_get_max_threads(). Within such a region:
/// once, in this thread. Returns when all are done.
void GOMP_parallel(void (*work)(void*), void* data, unsigned threads, unsigned flags);
void GOMP_barrier();
void omp_set_num_threads(int threads);
int omp_get_max_threads();
int omp_get_num_threads();
int omp_get_thread_num();
int omp_in_parallel();
}
