#pragma once
// What a test tells fake_cudnn.cpp, and what it is told. fake_cudnn() returns the one there is.
#include <cstddef>
#include <vector>

struct FakeCudnn {
  std::size_t version = 90100;
  bool on_tensor_cores = false;         ///< it offers algorithm 6, on tensor cores, before 0 and 1
  bool has_none = false;                ///< it finds no algorithm
  int refuses = 0;                      ///< what finding an algorithm returns
  int fails = 0, add_fails = 0;         ///< what computing returns
  int no_handle = 0;                    ///< what cudnnCreate() returns
  std::size_t workspace_bytes = 10000;  ///< of algorithm 1
  int handles = 0, descriptors = 0;     ///< that are alive
  struct Run {
    int algorithm, math;
  };
  std::vector<Run> ran = {};  ///< the convolutions that were computed
  void (*on_run)(int algorithm) = nullptr;
};
