#pragma once
// Jobs of a few ranks, each a list of collectives made by hand.
#include <functional>
#include <string>
#include <vector>

#include "core/ranks/run_together.h"
#include "tests/support/values.h"

namespace partita::testing {

/// A collective and its output.
struct Started {
  Collective collective;
  Tensor output;
};

inline Started all_reduce(const Tensor& x, const std::string& node, const std::string& op = "sum",
                          const std::string& group = "0") {
  const Tensor output = *Tensor::zeros(x.dtype, x.sizes);
  return {{.kind = Collective::Kind::AllReduce,
           .group = group,
           .reduce_op = op,
           .inputs = {x},
           .outputs = {output},
           .node = node},
          output};
}

inline Started all_gather(const Tensor& x, std::int64_t ranks, const std::string& node,
                          const std::string& group = "0") {
  Sizes sizes = x.sizes;
  sizes.front() *= ranks;
  const Tensor output = *Tensor::zeros(x.dtype, sizes);
  return {{.kind = Collective::Kind::AllGather,
           .group = group,
           .group_size = ranks,
           .inputs = {x},
           .outputs = {output},
           .node = node},
          output};
}

/// Starts it and waits for it.
inline Tensor call(Communicator& others, const Started& s) {
  others.start(s.collective);
  others.wait(s.output);
  return s.output;
}

}  // namespace partita::testing
