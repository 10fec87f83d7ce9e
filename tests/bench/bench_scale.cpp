// Reading and laying out graphs of 10,000 nodes must stay linear. Measures processor time, the best of five.
#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/load/fx_text.h"
#include "tests/views/graphs.h"
#include "views/picture/scene.h"

using namespace partita;

namespace {

template <class F>
double best_of_five_ms(F f) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const std::clock_t start = std::clock();
    f();
    best = std::min(best, 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

std::string chain_of_sums(int length) {
  std::string text =
      "class Chain(torch.nn.Module):\n    def forward(self, x: \"f32[8, 64, s77][64*s77, s77, 1]cpu\"):\n";
  std::string last = "x";
  for (int i = 0; i < length; ++i) {
    const std::string name = fmt::format("add_{}", i);
    text += fmt::format(
        "        {}: \"f32[8, 64, s77][64*s77, s77, 1]cpu\" = torch.ops.aten.add.Tensor({}, x, alpha = 2);  {} = "
        "None\n",
        name, last, last);
    last = name;
  }
  return text + "        return (" + last + ",)\n";
}

}  // namespace

int main() {
  for (int length : {2'500, 10'000}) {
    const std::string text = chain_of_sums(length);
    fmt::print("read {:>6} nodes: {:.1f} ms\n", length, best_of_five_ms([&] { CHECK(parse_fx_text(text)); }));
  }
  for (int layers : {200, 800}) {
    const views::Picture picture = views::make_picture(tests::joint_graph(layers));
    fmt::print("lay out {:>6} cards: {:.1f} ms\n", picture.cards.size(),
               best_of_five_ms([&] { views::lay_out(picture); }));
  }
}
