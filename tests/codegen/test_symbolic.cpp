// Graphs with symbolic sizes: compiled once, they give the interpreter's results for all sizes that their guards take.
#include <QtTest>
#include <list>

#include "codegen/backends.h"
#include "codegen/cpu/cpu_target.h"
#include "core/aot/aot.h"
#include "core/aot/pipeline.h"
#include "core/compare/compare.h"
#include "core/fake/propagate.h"
#include "core/interp/interpreter.h"
#include "core/interp/random_values.h"
#include "core/ir/archive_meta.h"
#include "core/ir/symbols_of.h"
#include "core/schedule/instantiate.h"
#include "core/schedule/make_plan.h"
#include "core/schedule/specialise.h"
#include "core/schedule/split.h"
#include "tests/support/close.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

using Kind = SizeCompilation::Kind;
using SymbolValues = std::map<std::string, std::int64_t>;

/// A triangle needs its diagonal as a number.
const char* const by_number = "y = $tril(x, s1)\nz = $sin(y)\nreturn (z,)";

struct Row {
  const char* name;
  const char* parameters;
  const char* lines;
  const char* sub_graphs = "";
};

const char* const one = "s0: 'Sym(s0)', x: <f32[s0, 8][8, 1]>";
const char* const two = "s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[s0, s1][s1, 1]>";
const char* const three = "s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[s0, 4, s1][4*s1, s1, 1]>";

const Row rows[] = {
    {"pointwise", two, "y = $sin(x)\nz = $mul.Tensor(y, x)\nreturn (z,)"},
    {"a number of elements", two, "y = $mul.Tensor(x, s0)\nz = $add.Tensor(y, s1)\nreturn (z,)"},
    {"a quotient of sizes", two,
     "q = s0 / s1\nk = s0 // s1\ny = $mul.Tensor(x, q)\nz = $add.Tensor(y, k)\nreturn (z,)"},
    {"roots of sizes", two,
     "f = torch.sym_float(s0)\nr = f ** 0.5\nq = 1.0 / r\np = q ** 0.5\ny = $mul.Scalar(x, p)\nt = $scalar_tensor(s1, "
     "dtype = torch.float32)\nz = $add.Tensor(y, t)\nreturn (z,)"},
    {"broadcast", two,
     "a = $sum.dim_IntList(x, [1], True)\nb = $sum.dim_IntList(x, [0], True)\nc = $add.Tensor(a, b)\nreturn (c,)"},
    {"softmax of rows", two, "y = $_softmax(x, 1, False)\nreturn (y,)"},
    {"softmax of columns", two, "y = $_softmax(x, 0, False)\nreturn (y,)"},
    {"mean and variance", two, "m = $var_mean.correction(x, [1], correction = 1)\na = m[0]\nb = m[1]\nreturn (a, b)"},
    {"layer norm", one, "m = $native_layer_norm(x, [8], None, None, 1e-05)\na = m[0]\nb = m[2]\nreturn (a, b)"},
    {"sums of columns", two, "y = $sum.dim_IntList(x, [0])\nreturn (y,)"},
    {"sum of all", two, "y = $sum(x)\nreturn (y,)"},
    {"argmax", two, "y = $argmax(x, 1)\nz = $argmax(x)\nreturn (y, z)"},
    {"transposed", three,
     "p = $permute(x, [2, 0, 1])\ny = $exp(p)\nc = $clone(y, memory_format = torch.contiguous_format)\nreturn (y, c)"},
    {"merged dimensions", three,
     "k = s0 * 4\nv = $view(x, [k, s1])\ny = $cos(v)\nw = $view(y, [s0, 4, s1])\nz = $add.Tensor(w, x)\nreturn (z,)"},
    {"a flat view", three, "v = $view(x, [-1])\ny = $cos(v)\nreturn (y,)"},
    {"split dimensions", "s0: 'Sym(s0)', x: <f32[4*s0, 6][6, 1]>",
     "v = $view(x, [s0, 4, 6])\ns = $sum.dim_IntList(v, [1])\nreturn (s,)"},
    {"a size of which there is a multiple only", "x: <f32[2*s0, 3][3, 1]>",
     "v = $view(x, [2, -1, 3])\nt = $sum.dim_IntList(v, [0])\nreturn (t,)"},
    {"slices", two,
     "a = $slice.Tensor(x, 0, 1, 9223372036854775807)\nb = $slice.Tensor(x, 0, 0, -1)\nc = $sub.Tensor(a, b)\nreturn "
     "(c,)"},
    {"cat", two, "y = $neg(x)\nc = $cat([x, y], 1)\nd = $cat([x, y, x], 0)\ne = $cos(c)\nreturn (e, d)"},
    {"padding by a size", two, "p = $constant_pad_nd(x, [0, s0, s1, -1], 0.5)\nreturn (p,)"},
    {"a roll", two, "y = $roll(x, [1], [0])\nz = $sin(y)\nreturn (z,)"},
    {"a roll of nothing", two, "e = $new_empty(x, [0])\ny = $roll(e, [s0], [0])\nz = $sin(x)\nreturn (y, z)"},
    {"a roll by a size", two, "k = s0 - 1\ny = $roll(x, [k, s1], [0, 1])\nz = $sin(y)\nreturn (z,)"},
    {"windows", two, "v = $as_strided(x, [s0, s1], [s1, 1], 0)\nz = $sin(v)\nreturn (z,)"},
    {"a condition", two,
     "m = $sum(x)\np = $gt.Scalar(m, 0)\nt = self.t\nf = self.f\nc = torch.ops.higher_order.cond(p, t, f, (x,))\n"
     "g: <f32[s0, s1][s1, 1]> = c[0]\nz = $mul.Tensor(g, x)\nreturn (z,)",
     "\n    class t(torch.nn.Module):\n        def forward(self, x: <f32[s0, s1][s1, 1]>):\n"
     "            s: <f32[s0, s1][s1, 1]> = $add.Tensor(x, 1)\n            return (s,)\n"
     "\n    class f(torch.nn.Module):\n        def forward(self, x: <f32[s0, s1][s1, 1]>):\n"
     "            s: <f32[s0, s1][s1, 1]> = $neg(x)\n            return (s,)\n"},
    {"padding", two, "p = $constant_pad_nd(x, [1, 2, 3, 0], 0.5)\nreturn (p,)"},
    {"windows of an adaptive pool", "s0: 'Sym(s0)', x: <f32[4, s0, 2*s0][2*s0**2, 2*s0, 1]>",
     "a = $_adaptive_avg_pool2d(x, [1, 2])\nb = $_adaptive_avg_pool2d_backward(a, x)\nreturn (a, b)"},
    {"groups of channels", "s0: 'Sym(s0)', x: <f32[3, 2*s0, 5][10*s0, 5, 1]>, w: <f32[2*s0][1]>",
     "k = 2 * s0\nm = $native_group_norm(x, w, None, 3, k, 5, 2, 1e-05)\na = m[0]\nb = m[2]\nreturn (a, b)"},
    {"a size that is rounded", one,
     "f = torch.sym_float(s0)\nm = f * 0.7\nk = math.trunc(m)\nq = f / 1.7\nc = math.ceil(q)\n"
     "i = $arange.start_step(0, k, 1, dtype = torch.int64, device = device(type='cpu'), pin_memory = False)\n"
     "a = $mul.Tensor(i, 3)\ne = $new_ones(x, [c, 8])\nb = $exp(e)\nreturn (a, b)"},
    {"a triangle", two, "t = $tril(x)\nu = $triu(x, 1)\nreturn (t, u)"},
    {"positions", "s0: 'Sym(s0)', x: <f32[s0][1]>",
     "i = $arange.start_step(0, s0, 1, dtype = torch.int64, device = device(type='cpu'), pin_memory = False)\ny = "
     "$mul.Tensor(x, i)\nreturn (y,)"},
    {"ranges of sizes", two,
     "n = s0 * s1\nk = s1 + s0\na = $arange.start_step(0, n, s1)\nb = $arange.start_step(s1, k, 1, dtype = "
     "torch.float32)\nc = $arange.start_step(0, n, s1, dtype = torch.float32)\nd = torch.ops.prims.iota.default(s0, "
     "start "
     "= s1, step = k, dtype = torch.int64, device = device(type='cpu'), requires_grad = False)\nreturn (a, b, c, d)"},
    {"embedding", "s0: 'Sym(s0)', w: <f32[10, 6][6, 1]>, i: <i64[s0, 3][3, 1]>",
     "z = $remainder.Scalar(i, 10)\ne = $embedding(w, z)\ns = $sin(e)\nreturn (s,)"},
    {"products", "s0: 'Sym(s0)', x: <f32[s0, 8][8, 1]>, w: <f32[8, 5][5, 1]>, b: <f32[5][1]>",
     "y = $addmm(b, x, w)\nz = $relu(y)\nt = $permute(z, [1, 0])\ng = $mm(t, x)\nreturn (z, g)"},
    {"a pool in one dimension", "s0: 'Sym(s0)', x: <f32[2, 3, 3*s0 + 6][9*s0 + 18, 3*s0 + 6, 1]>",
     "u = $unsqueeze(x, -2)\np = $avg_pool2d(u, [1, 3], [1, 3])\ns = $squeeze.dim(p, -2)\nreturn (s,)"},
    {"classes", "s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[s0, s1][s1, 1]>, t: <i64[s0][1]>",
     "l = $nll_loss_forward(x, t, None, 1, -100)\na = l[0]\nb = l[1]\nreturn (a, b)"},
    {"images",
     "s0: 'Sym(s0)', x: <f32[s0, 8, 6, 6][288, 36, 6, 1]>, w: <f32[16, 8, 3, 3][72, 9, 3, 1]>, v: <f32[4, 16, 3, "
     "3][144, 9, 3, 1]>",
     "y = $convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)\nr = $relu(y)\n"
     "z = $convolution(r, v, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)\nreturn (z,)"},
    {"attention",
     "s0: 'Sym(s0)', s1: 'Sym(s1)', q: <f32[s0, 2, s1, 4][8*s1, 4*s1, 4, 1]>, k: <f32[s0, 2, s1, 4][8*s1, 4*s1, 4, 1]>",
     "n = s0 * 2\na = $view(q, [n, s1, 4])\nb = $permute(k, [0, 1, 3, 2])\nc = $clone(b, memory_format = "
     "torch.contiguous_format)\nd = $view(c, [n, 4, s1])\n"
     "m = $bmm(a, d)\ne = $view(m, [s0, 2, s1, s1])\nf = $_softmax(e, -1, False)\nreturn (f,)"},
    {"the gradient of a broadcast", two,
     "e = $exp(x)\ns = $sum.dim_IntList(e, [0], True)\nd = $div.Tensor(e, s)\nm = $mul.Tensor(d, x)\nt = "
     "$sum.dim_IntList(m, [1], True)\nr = $sub.Tensor(m, t)\nreturn (r, s)"},
    {"pieces", "s0: 'Sym(s0)', x: <f32[s0, 12][12, 1]>",
     "p = $split.Tensor(x, 4, 1)\na = p[0]\nb = p[2]\nc = $mul.Tensor(a, b)\nreturn (c,)"},
};

std::unique_ptr<Graph> with_hints(const char* parameters, const char* lines, const char* sub_graphs,
                                  const SymbolValues& hints = {{"s0", 12}, {"s1", 4}}) {
  auto graph = fx(parameters, lines, sub_graphs);
  if (!graph->shapes) graph->shapes = std::make_shared<ShapeEnv>();
  for (const auto& [symbol, hint] : hints) graph->shapes->set_hint(symbol, hint);
  return graph;
}

/// A graph compiled for this machine, and what its compilations told.
struct Compiled {
  std::unique_ptr<Graph> graph;
  std::vector<SizeCompilation> compilations;
  bool strides = true;  ///< compare them, too
  Result<CompiledFn> run;

  Compiled(const char* parameters, const char* lines, const char* sub_graphs = "")
      : graph(with_hints(parameters, lines, sub_graphs)), run(made(*graph)) {}
  /// A program, of which AOTAutograd makes the graph for sizes like these.
  Compiled(const char* parameters, const char* lines, const SymbolValues& hints)
      : graph(with_hints(parameters, lines, "", hints)), run(made_of_program()) {}

  Result<CompiledFn> made(const Graph& source) {
    BackendOptions options;
    options.on_sizes = [this](const SizeCompilation& c) { compilations.push_back(c); };
    return default_compiler().make(options)(source);
  }
  Result<CompiledFn> made_of_program() {
    AotOptions inference;
    inference.train = false;
    TRY(const AotGraphs graphs, aot(*graph, nullptr, as_run(*graph, inference)));
    return made(*graphs.partition.forward);
  }

  /// Why the results for these sizes are not the interpreter's, strides included unless there are none or values
  /// decide them; empty when they are.
  QString wrong_for(const SymbolValues& sizes) { return QString::fromStdString(why_wrong(sizes)); }
  std::string why_wrong(const SymbolValues& sizes) {
    std::string at;
    for (const auto& [name, value] : sizes) at += " " + name + "=" + std::to_string(value);
    if (!run) return run.error().line() + at;
    Graph parameters;
    parameters.shapes = graph->shapes;
    for (const Node* p : graph->placeholders()) parameters.placeholder(p->name(), p->meta);
    parameters.set_output(Arg::tuple({}));
    const auto special = schedule::specialise(parameters, sizes);
    if (!special) return special.error().line() + at;
    const auto inputs = random_inputs(**special, 3);
    if (!inputs) return inputs.error().line() + at;
    const auto expected = interpret(*graph, *inputs), found = (*run)(*inputs);
    if (!expected || !found) return (expected ? found : expected).error().line() + at;
    if (found->size() != expected->size()) return "another number of results" + at;
    for (std::size_t i = 0; i < found->size(); ++i) {
      const auto *x = (*expected)[i].get<Tensor>(), *y = (*found)[i].get<Tensor>();
      if (!x || !y || (strides && x->numel() > 0 && x->strides != y->strides))
        return "other strides of result " + std::to_string(i) + at;
      if (const std::string difference = wrong((*expected)[i], (*found)[i], {}); !difference.empty())
        return difference + at;
    }
    return "";
  }

  std::string told() const {
    std::string text;
    for (const SizeCompilation& c : compilations) text += partita::text(c);
    return text;
  }
};

}  // namespace

class TestSymbolic : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void one_compilation_serves_all_sizes_data() {
    QTest::addColumn<int>("index");
    for (int i = 0; i < static_cast<int>(std::size(rows)); ++i) QTest::newRow(rows[i].name) << i;
  }
  void one_compilation_serves_all_sizes() {
    QFETCH(int, index);
    const Row& row = rows[index];
    Compiled compiled(row.parameters, row.lines, row.sub_graphs);
    const bool both = std::string(row.parameters).find("s1") != std::string::npos;
    const std::int64_t firsts[] = {7, 4, 33, 5, 100, 64, 3}, seconds[] = {5, 16, 3, 70, 2};
    for (const std::int64_t first : firsts)
      for (const std::int64_t second : both ? std::span(seconds) : std::span(seconds).first(1)) {
        SymbolValues sizes{{"s0", first}};
        if (both) sizes["s1"] = second;
        QCOMPARE(compiled.wrong_for(sizes), QString());
      }
    std::set<std::string> graphs;
    for (const SizeCompilation& c : compiled.compilations)
      QVERIFY2(c.kind == Kind::Symbolic && graphs.insert(c.graph).second, compiled.told().c_str());
    QVERIFY(!graphs.empty());
  }

  /// An item() of a tensor is an argument of the kernels after it: its values need no other code.
  void numbers_are_known_at_run_time_data() {
    QTest::addColumn<QString>("lines");
    QTest::newRow("factors") << "y = $mul.Tensor(x, v)\nz = $add.Tensor(y, y, alpha = v)";
    QTest::newRow("powers") << "y = $abs(x)\nz = $pow.Tensor_Scalar(y, v)";
    QTest::newRow("bounds") << "k = -v\nz = $clamp(x, k, v)";
    QTest::newRow("arithmetic") << "k = v * 2\nl = k + 1.5\nm = 1.0 / l\nz = $mul.Scalar(x, m)";
    QTest::newRow("functions") << "k = torch._sym_sin(v)\nl = torch._sym_sqrt(v)\nm = k * l\nz = $sub.Tensor(x, m)";
    QTest::newRow("mixtures") << "z = $lerp.Scalar(x, x, v)";
    QTest::newRow("losses") << "w = $neg(x)\nz = $huber_loss(x, w, 0, v)";
  }
  void numbers_are_known_at_run_time() {
    QFETCH(QString, lines);
    Compiled compiled("x: <f32[5, 7][7, 1]>, n: <f64[][]>",
                      ("v: 'Sym(zuf0)' = $_local_scalar_dense(n)\n" + lines + "\nreturn (z,)").toUtf8().constData(),
                      SymbolValues());
    QVERIFY2(compiled.run, compiled.run ? "" : compiled.run.error().line().c_str());
    const auto x = random_inputs(*fx("x: <f32[5, 7][7, 1]>", "return (x,)"), 3);
    for (const double v : {0.25, 3.0, 1.0, 0.125, 2.5}) {
      const std::vector<Value> inputs = {(*x)[0], tensor(DType::Float64, {}, {v})};
      const auto expected = interpret(*compiled.graph, inputs), found = (*compiled.run)(inputs);
      QVERIFY2(expected && found,
               (expected ? found : expected) ? "" : (expected ? found : expected).error().line().c_str());
      QCOMPARE(QString::fromStdString(wrong((*expected)[0], (*found)[0], {})), QString());
    }
    QVERIFY2(compiled.compilations.size() == 1 && compiled.compilations[0].kind == Kind::Symbolic,
             compiled.told().c_str());
  }

  void composites_take_symbolic_sizes_data() {
    QTest::addColumn<QString>("parameters");
    QTest::addColumn<QString>("call");
    QTest::newRow("shuffled channels")
        << "s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[1, s0, s1, s1][s0*s1**2, s1**2, s1, 1]>"
        << "$pixel_shuffle(x, 2)";
    QTest::newRow("kernels of a size") << "s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[1, 4, 9, 9][324, 81, 9, 1]>, "
                                          "w: <f32[2, 4, s0, s1][4*s0*s1, s0*s1, s1, 1]>"
                                       << "$conv2d.padding(x, w, None, [1, 1], 'same')";
    QTest::newRow("heads of a size") << "s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[2, 3, s0, s1][3*s0*s1, s0*s1, s1, 1]>"
                                     << "$scaled_dot_product_attention(x, x, x)";
    QTest::newRow("half a spectrum") << "s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[s0, s1][s1, 1]>"
                                     << "$fft_rfft(x)\ny = $fft_irfft(y)";
  }
  void composites_take_symbolic_sizes() {
    QFETCH(QString, parameters);
    QFETCH(QString, call);
    const QByteArray lines = "y = " + call.toUtf8() + "\nreturn (y,)";
    for (const auto& [first, second] : {std::pair{8, 4}, {4, 6}}) {
      const SymbolValues sizes{{"s0", first}, {"s1", second}};
      Compiled compiled(parameters.toUtf8().constData(), lines.constData(), sizes);
      QCOMPARE(compiled.wrong_for(sizes), QString());
    }
  }

  void images_are_interpolated_data() {
    QTest::addColumn<QString>("call");
    const std::pair<const char*, const char*> calls[] = {
        {"twice the size", "$upsample_nearest2d.vec(x, None, [2.0, 2.0])"},
        {"less than the size", "$upsample_nearest2d.vec(x, None, [0.7, 1.5])"},
        {"to given sizes", "$upsample_nearest2d.vec(x, [7, 9], None)"},
        {"exact", "$_upsample_nearest_exact2d.vec(x, None, [1.5, 0.4])"},
        {"bilinear", "$upsample_bilinear2d.vec(x, None, False, [1.3, 2.0])"},
        {"bilinear between corners", "$upsample_bilinear2d.vec(x, [s1, s0], True, None)"},
        {"bilinear to given sizes", "$upsample_bilinear2d.vec(x, [7, 9], False, None)"},
        {"bicubic", "$upsample_bicubic2d.vec(x, None, False, [2.0, 0.6])"},
        {"bicubic to other sizes", "$upsample_bicubic2d.vec(x, [s1, s0], True, None)"},
    };
    for (const auto& [name, call] : calls) QTest::newRow(name) << call;
  }
  void images_are_interpolated() {
    QFETCH(QString, call);
    const QByteArray lines = "y = " + call.toUtf8() + "\nreturn (y,)";
    const char* const image = "s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[2, 4, s0, s1][4*s0*s1, s0*s1, s1, 1]>";
    std::list<Compiled> all;
    for (const auto& [first, second] : {std::pair{12, 4}, {8, 10}, {40, 63}, {64, 64}, {12, 12}, {70, 90}, {3, 5}}) {
      const SymbolValues sizes{{"s0", first}, {"s1", second}};
      const auto fits = [&](const Compiled& c) {
        return schedule::broken_guards(c.graph->shapes->guards(), sizes).empty();
      };
      auto compiled = std::ranges::find_if(all, fits);
      if (compiled == all.end()) compiled = all.emplace(all.end(), image, lines.constData(), sizes);
      QCOMPARE(compiled->wrong_for(sizes), QString());
    }
    QVERIFY2(all.size() <= 3, std::to_string(all.size()).c_str());
    for (const SizeCompilation& c : all.front().compilations)
      QVERIFY2(c.kind == Kind::Symbolic, all.front().told().c_str());
  }

  /// Images of all sizes have the layout that the library prefers.
  void channels_come_last() {
    const auto row = std::ranges::find(rows, std::string_view("images"), &Row::name);
    const auto graph = with_hints(row->parameters, row->lines, "");
    QVERIFY(prepare_post_grad(*graph));
    loops::Target target = codegen::host_target(1);
    if (target.channels_last.empty()) QSKIP("this machine's library has no preferred layout");
    const auto plan = schedule::make_plan(*graph, {.sizes = {{"s0", 12}}, .target = target, .symbolic = true});
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    QVERIFY2(print(*plan).find("[s0, 16, 6, 6][576, 1, 96, 16]") != std::string::npos, print(*plan).c_str());
  }

  void sizes_that_a_decomposed_call_refuses_are_refused() {
    const auto graph = with_hints("s0: 'Sym(s0)', x: <f32[2, 3, s0, 5][15*s0, 5*s0, 5, 1]>",
                                  "y = $im2col(x, [2, 2], [1, 1], [0, 0], [1, 1])\nreturn (y,)", "");
    const auto known = propagate(*graph);
    QVERIFY2(known, known ? "" : known.error().line().c_str());
    const auto run = default_compiler().make({})(*graph);
    QVERIFY2(bool(run), run ? "" : run.error().line().c_str());
    const auto result = [&](std::int64_t rows) {
      return (*run)({rows, *Tensor::zeros(DType::Float32, {2, 3, rows, 5})});
    };
    QVERIFY(result(7));
    const auto found = result(1);
    QVERIFY(!found);
    QVERIFY2(found.error().message.find("sliding blocks") != std::string::npos, found.error().message.c_str());
  }

  /// Passes take calls apart for the sizes that the graph was made with. What they took for granted is a guard.
  void sizes_that_the_passes_did_not_meet_have_code_data() {
    QTest::addColumn<QString>("parameters");
    QTest::addColumn<QString>("lines");
    const QString number = "s0: 'Sym(s0)', x: <f32[6][1]>, ", numbers = "s0: 'Sym(s0)', x: <f32[3, 4, 2][8, 2, 1]>, ";
    const auto row = [](const char* name, const QString& parameters, const char* lines) {
      QTest::newRow(name) << parameters << lines;
    };
    row("a factor of a window", number, "k = s0 - 10\ny = $hamming_window.periodic_alpha(2, False, k)");
    row("a factor of a gradient", number, "y = $rrelu_with_noise_backward(x, x, x, 2.0, s0, False, True)");
    row("a bound", number, "y = $logit_backward(x, x, s0)");
    row("a kept dimension", numbers, "k = torch.sym_min(s0, 2)\ny = $_fft_r2c(x, [k], 1, False)");
    row("a scale", "s0: 'Sym(s0)', x: <f32[2, 3, 4][12, 4, 1]>, ",
        "f = torch.sym_float(s0)\nk = f - 7.0\ny = $upsample_nearest1d(x, [8], k)");
    row("the size of a sum", "s0: 'Sym(s0)', x: <f32[2, 5][5, 1]>, ", "k = s0 - 11\ny = $sum_to_size(x, [2, k])");
    row("the parts of a dimension", "s0: 'Sym(s0)', x: <f32[0, 3][3, 1]>, ",
        "k = s0 - 7\ny = torch.ops.prims.split_dim.default(x, 0, k)");
    row("the layout of a broadcast",
        "s0: 'Sym(s0)', x: <f32[s0, 2, 3][6, 3, 1]>, y: <i64[4, 12, 2, 3][72, 1, 36, 12]>, g: <f32[3][1]>, ",
        "y = $soft_margin_loss_backward(g, x, y, 0)");
    row("probabilities of classes", "s0: 'Sym(s0)', x: <f32[s0, 3][3, 1]>, t: <f32[12, 3][3, 1]>, ",
        "y = $cross_entropy_loss(x, t)");
    row("an empty diagonal", "s0: 'Sym(s0)', x: <f32[s0, 4, s0][4*s0, s0, 1]>, ", "y = $diagonal_copy(x, 9, 0, 2)");
    row("a stride", number, "k = s0 - 7\ny = torch.ops.prims.copy_strided.default(x, [k])");
    row("what only values decide", "s0: 'Sym(s0)', x: <f32[3, s0][s0, 1]>, ", "u = $unique_dim(x, -1)\ny = u[0]");
    row("a list of results", "s0: 'Sym(s0)', x: <f32[s0][1]>, ", "u = $unbind.int(x)\ny = u[1]");
    row("halves", "s0: 'Sym(s0)', x: <f32[s0, 3][3, 1]>, ", "y = $glu(x, 0)");
    row("the length of a dimension", number, "k = s0 - 6\ny = $unflatten.int(x, 0, [k, -1])");
    row("a broadcast", "s0: 'Sym(s0)', x: <f32[s0][1]>, w: <f32[12][1]>, ",
        "a = $sigmoid(x)\ny = $binary_cross_entropy(a, w, None, 0)");
    row("a call that is cut", "s0: 'Sym(s0)', x: <f32[6][1]>, ",
        "k = s0 - 10\nn = $nonzero(x)\nf = $sum(n)\nw = $hamming_window.periodic_alpha(2, False, k)\n"
        "y = $add.Tensor(w, f)");
  }
  void sizes_that_the_passes_did_not_meet_have_code() {
    QFETCH(QString, parameters);
    QFETCH(QString, lines);
    const QByteArray given = parameters.left(parameters.size() - 2).toUtf8(), text = (lines + "\nreturn (y,)").toUtf8();
    const auto graph = with_hints(given.constData(), text.constData(), "");
    const auto known = propagate(*graph);
    QVERIFY2(known, known ? "" : known.error().line().c_str());
    const auto run = default_compiler().make({})(*graph);
    QVERIFY2(bool(run), run ? "" : run.error().line().c_str());
    for (const std::int64_t first : {12, 7, 8, 12, 9, 8}) {
      Graph inputs_of;
      for (const Node* p : graph->placeholders()) inputs_of.placeholder(p->name(), p->meta);
      inputs_of.set_output(Arg::tuple({}));
      const auto special = schedule::specialise(inputs_of, {{"s0", first}});
      QVERIFY(special);
      const auto inputs = random_inputs(**special, 3);
      QVERIFY(inputs);
      const auto expected = interpret(*graph, *inputs), found = (*run)(*inputs);
      const std::string at = " at s0=" + std::to_string(first);
      if (expected && !found) QFAIL((found.error().line() + at).c_str());
      QVERIFY2(expected || !found, at.c_str());
      if (!expected) continue;
      QCOMPARE(QString::fromStdString(wrong((*expected)[0], (*found)[0], {})), QString());
      const auto *x = (*expected)[0].get<Tensor>(), *y = (*found)[0].get<Tensor>();
      QVERIFY2(x->numel() == 0 || x->strides == y->strides, at.c_str());
    }
  }

  void a_view_into_quotients_of_a_size_is_no_copy() {
    const auto graph = with_hints("s0: 'Sym(s0)', x: <f32[s0, 5][5, 1]>", "v = $view(x, [4, -1, 5])\nreturn (v,)", "");
    QVERIFY(prepare_post_grad(*graph));
    const auto plan =
        schedule::make_plan(*graph, {.sizes = {{"s0", 12}}, .target = codegen::host_target(1), .symbolic = true});
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    QVERIFY2(plan->steps.empty(), print(*plan).c_str());
  }

  /// Strides of a size that may be 0 are written with Max(1, n), here to the power of 2.
  void pictures_of_a_rounded_size_have_kernels() {
    const auto graph = with_hints("s0: 'Sym(s0)', x: <f32[s0, s0][s0, 1]>",
                                  "f = torch.sym_float(s0)\nm = f * 0.6\nk = math.trunc(m)\n"
                                  "a = $new_ones(x, [2, 3, k, k])\nb = $exp(a)\nreturn (b,)",
                                  "");
    QVERIFY(prepare_post_grad(*graph));
    const auto plan =
        schedule::make_plan(*graph, {.sizes = {{"s0", 12}}, .target = codegen::host_target(1), .symbolic = true});
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    QVERIFY2(!plan->kernels.empty() && plan->steps.size() == plan->kernels.size(), print(*plan).c_str());
  }

  void a_broken_guard_is_named() {
    Compiled compiled(three, by_number);
    for (const std::int64_t width : {12, 20, 12})
      QCOMPARE(compiled.wrong_for({{"s0", width + 1}, {"s1", width}}), QString());
    QCOMPARE(compiled.compilations.size(), std::size_t{2});
    QVERIFY(compiled.compilations[0].tried.empty());
    QCOMPARE(compiled.compilations[1].tried.size(), std::size_t{1});
    const std::string told = text(compiled.compilations[1]);
    QVERIFY2(told.find("compilation 1: guard `") != std::string::npos, told.c_str());
    QVERIFY2(told.find("failed: s1 = 20") != std::string::npos, told.c_str());
    QVERIFY2(told.find("mark size 2 of x (s1) dynamic") != std::string::npos, told.c_str());
    const auto bytes = to_bytes("", compiled.compilations[1]);
    QVERIFY(bytes);
    const auto read = from_bytes<SizeCompilation>("", *bytes);
    QVERIFY(read);
    QCOMPARE(text(*read), told);
  }

  void sizes_of_one_get_code_of_their_own() {
    Compiled compiled(two, "a = $slice.Tensor(x, 0, 1, 9223372036854775807)\nb = $add.Tensor(a, a)\nreturn (b,)");
    for (const auto& [first, second] : {std::pair{9, 4}, {2, 4}, {5, 1}, {7, 3}, {8, 1}, {30, 1}, {6, 0}, {7, 0}})
      QCOMPARE(compiled.wrong_for({{"s0", first}, {"s1", second}}), QString());
    QVERIFY2(compiled.compilations.size() == 4, compiled.told().c_str());
    for (const SizeCompilation& c : compiled.compilations) QCOMPARE(c.kind, Kind::Symbolic);
    QCOMPARE(compiled.compilations[2].fixed, (SymbolValues{{"s1", 1}}));
    QCOMPARE(compiled.compilations[3].tried.size(), std::size_t{3});
  }

  /// A half of two columns is 1 by the sizes of the example, and not by its expression.
  void a_size_that_happens_to_be_one_stays_symbolic() {
    const auto graph = fx("s0: 'Sym(s0)', x: <f32[3, s0][s0, 1]>", "g = $glu(x, 1)\nreturn (g,)");
    graph->shapes->set_hint("s0", 2);
    const auto run = default_compiler().make({})(*graph);
    QVERIFY2(bool(run), run ? "" : run.error().line().c_str());
    for (const std::int64_t columns : {2, 6, 4}) {
      std::vector<double> x;
      for (std::int64_t i = 0; i < 3 * columns; ++i) x.push_back(0.25 * static_cast<double>(i) - 1);
      const std::vector<Value> inputs{columns, f32({3, columns}, x)};
      const auto expected = interpret(*graph, inputs), found = (*run)(inputs);
      QVERIFY2(expected && found, expected && found ? "" : (expected ? found : expected).error().line().c_str());
      QCOMPARE(found->at(0).get<Tensor>()->sizes, (Sizes{3, columns / 2}));
      QCOMPARE(QString::fromStdString(wrong(expected->at(0), found->at(0), {})), QString());
    }
  }

  void compilations_end_at_a_limit() {
    Config few = config();
    few.recompile_limit = 2;
    const ConfigScope scope(few);
    Compiled compiled(three, by_number);
    for (const std::int64_t width : {12, 20, 30, 40, 12, 20, 50})
      QCOMPARE(compiled.wrong_for({{"s0", 3}, {"s1", width}}), QString());
    QVERIFY2(compiled.compilations.size() == 3, compiled.told().c_str());
    QCOMPARE(compiled.compilations[2].kind, Kind::Interpreted);
    QCOMPARE(compiled.compilations[2].tried.size(), std::size_t{2});
    QVERIFY(compiled.told().find("recompile_limit") != std::string::npos);
  }

  void sizes_that_values_decide_data() {
    QTest::addColumn<QString>("lines");
    QTest::newRow("nonzero") << "m = $gt.Scalar(x, 0)\nn = $nonzero(m)\nf = $_to_copy(n, dtype = torch.float32)\ng = "
                                "$mul.Tensor(f, 2)\ns = $sum.dim_IntList(g, [0])\nreturn (g, s)";
    QTest::newRow("a view of an input on both sides")
        << "v = $view(x, [-1])\ne = $exp(v)\nm = $gt.Scalar(v, 0)\nn = $nonzero(m)\nw = $view(n, [-1])\ni = "
           "$index.Tensor(e, [w])\nj = $index.Tensor(v, [w])\nk = $add.Tensor(i, j)\nreturn (k, v)";
    QTest::newRow("two of them") << "m = $gt.Scalar(x, 0.05)\nn = $nonzero(m)\nc = $cos(x)\nl = $gt.Scalar(c, "
                                    "0.995)\no = $nonzero(l)\np = $cat([n, o], 0)\nq = $add.Scalar(p, 1)\nreturn (q,)";
    QTest::newRow("a tuple") << "t = $mul.Scalar(x, 20)\nr = $round(t)\nf = $view(r, [-1])\nu = $_unique2(f, True, "
                                "True, False)\na = u[0]\nb = "
                                "u[1]\nc = $mul.Tensor(a, a)\nd = $sum(c)\nreturn (c, b, d)";
  }
  void sizes_that_values_decide() {
    QFETCH(QString, lines);
    Compiled compiled(two, lines.toUtf8().constData());
    compiled.strides = false;
    QVERIFY2(compiled.run, compiled.run ? "" : compiled.run.error().line().c_str());
    for (const auto& [first, second] : {std::pair{9, 4}, {2, 4}, {7, 3}, {12, 5}, {40, 6}, {31, 2}})
      QCOMPARE(compiled.wrong_for({{"s0", first}, {"s1", second}}), QString());
    std::map<std::string, int> symbolic;
    for (const SizeCompilation& c : compiled.compilations) {
      QVERIFY2(c.kind == Kind::Symbolic, compiled.told().c_str());
      if (c.fixed.empty()) ++symbolic[c.graph];
    }
    for (const auto& [graph, times] : symbolic) QVERIFY2(times == 1, compiled.told().c_str());
  }

  /// The shapes of all parts are one object, which knows the range of an input's size.
  void sizes_that_values_decide_are_not_called_as_sizes_of_inputs() {
    const auto graph =
        fx("x: <f32[s0, 6][6, 1]>", "n = $nonzero(x)\nm = $gt.Scalar(n, 1)\no = $nonzero(m)\nreturn (o,)");
    graph->shapes->set_hint("s0", 3);
    graph->shapes->set_range("s0", {2, 3});
    const auto known = propagate(*graph);
    QVERIFY2(known, known ? "" : known.error().line().c_str());
    const auto first = schedule::split_at_values(*graph);
    QVERIFY(first && first->after);
    const auto second = schedule::split_at_values(*first->after);
    QVERIFY(second && second->after);
    for (const Node* input : second->after->placeholders())
      for (const std::string& symbol : symbols_of(input->meta)) QVERIFY2(symbol != "s0", symbol.c_str());
  }

  void an_input_is_written_after_a_view_of_it_was_read() {
    Compiled compiled(two,
                      "v = $view(x, [-1])\nm = $gt.Scalar(v, 0)\nn = $nonzero(m)\nw = $view(n, [-1])\ni = "
                      "$index.Tensor(v, [w])\nr = $flip(x, [0])\nt = $add.Tensor(r, 1)\ns = $sum(i)\nc = $copy_(x, "
                      "t)\nreturn (s, i)");
    QVERIFY2(compiled.run, compiled.run ? "" : compiled.run.error().line().c_str());
    for (const std::int64_t rows : {9, 20}) {
      const auto inputs = [&] {
        Tensor x = *Tensor::zeros(DType::Float32, {rows, 6});
        for (std::int64_t i = 0; i < x.numel(); ++i) x.as<float>()[i] = static_cast<float>((i * 7919) % 13) - 6;
        return std::vector<Value>{rows, std::int64_t{6}, x};
      };
      const std::vector<Value> ours = inputs(), theirs = inputs();
      const auto expected = interpret(*compiled.graph, theirs), found = (*compiled.run)(ours);
      QVERIFY2(found, found ? "" : found.error().line().c_str());
      for (std::size_t i = 0; i < expected->size(); ++i)
        QCOMPARE(wrong((*expected)[i], (*found)[i], {}), std::string());
      QCOMPARE(wrong(theirs[2], ours[2], {}), std::string());
    }
  }
};

QTEST_MAIN(TestSymbolic)
#include "test_symbolic.moc"
