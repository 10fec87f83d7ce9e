// The flow from a file's graph to the graphs that a compiler gets: its stages, what they keep, and that `aot` shows
// what a run compiles.
#include <QtTest>

#include <nlohmann/json.hpp>

#include "core/aot/aot.h"
#include "core/aot/run_program.h"
#include "core/base/memory.h"
#include "core/interp/interpreter.h"
#include "core/ir/print.h"
#include "core/load/fx_text.h"
#include "tests/aot/flow.h"
#include "tests/support/fx.h"
#include "tests/support/interpreted.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

class TestPipeline : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_stages_are_those_asked_for() {
    const auto graph = fx("x: <f32[3][1]>", "y: <f32[3][1]> = $sin(x)\nreturn (y,)");
    const auto all = made(graph, {});
    VERIFY_DONE(all);
    QCOMPARE(stages_of(*all), std::string("pre_grad_passes functional functional_passes joint joint_passes partition"));
    const auto plain = made(graph, {.passes = false});
    VERIFY_DONE(plain);
    QCOMPARE(stages_of(*plain), std::string("functional joint partition"));
    const auto inference = made(graph, {.train = false});
    VERIFY_DONE(inference);
    QCOMPARE(stages_of(*inference), std::string("pre_grad_passes functional functional_passes joint_passes partition"));
    const auto early = made(graph, {.until = Stage::Joint, .snapshots = true});
    VERIFY_DONE(early);
    QVERIFY(!early->partition.forward);
    QVERIFY(early->after(Stage::PreGradPasses) && !early->after(Stage::JointPasses));
    const auto joint = aot(*early->joint, nullptr, {});
    VERIFY_DONE(joint);
    QCOMPARE(stages_of(*joint), std::string("joint_passes partition"));
  }

  /// A parameter that an archive holds without requires_grad is differentiated only if the inputs' file marks it.
  void frozen_parameters() {
    const auto graph = fx("p_w: <f32[2][1]>, p_v: <f32[2][1]>, x: <f32[2][1]>",
                          "a = $mul.Tensor(x, p_w)\nb = $mul.Tensor(a, p_v)\nc = $sum(b)\nreturn (c,)");
    auto program = std::make_shared<ExportedProgram>();
    for (const char* name : {"w", "v"}) {
      program->inputs.push_back({ProgramInputKind::Parameter, std::string("p_") + name, name});
      Tensor t = f32({2}, {1, 2});
      t.requires_grad = name[0] == 'w';
      program->tensors.emplace(name, std::move(t));
    }
    program->inputs.push_back({ProgramInputKind::UserInput, "x"});
    program->outputs.push_back({ProgramOutputKind::UserOutput, "c"});
    const auto graphs = aot(*graph, program.get(), {.passes = false});
    VERIFY_DONE(graphs);
    const std::vector<Arg> gradients = graphs->partition.backward->outputs();
    QVERIFY(gradients[0].node() && gradients[1].is_none() && gradients[2].is_none());
    Artefact artefact = artefact_of(*graph);
    artefact.program = program;
    TensorFile io;
    io.tensors["input.0"] = f32({2}, {3, 4});
    for (const bool marked : {false, true}) {
      if (marked) (io.tensors["param.v"] = f32({2}, {1, 2})).requires_grad = true;
      const auto out =
          run_program(artefact, io, {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
      VERIFY_DONE(out);
      QVERIFY(out->find("grad.w"));
      QCOMPARE(out->find("grad.v") != nullptr, marked);
    }
  }

  /// A program may return one tensor, or dicts and lists: runs give the leaves.
  void results_are_flattened_data() {
    QTest::addColumn<QString>("returned");
    QTest::addColumn<std::size_t>("leaves");
    QTest::newRow("a tensor") << "a" << std::size_t{1};
    QTest::newRow("a dict of a list") << "{'k': a, 'l': [b, (x, a)]}" << std::size_t{4};
    QTest::newRow("nothing is called") << "(x, [x])" << std::size_t{2};
  }
  void results_are_flattened() {
    QFETCH(QString, returned);
    QFETCH(std::size_t, leaves);
    const auto graph =
        fx("x: <f32[2][1]>", "a: <f32[2][1]> = $sin(x)\nb: <f32[2][1]> = $cos(x)\nreturn " + returned.toStdString());
    const std::vector<Value> inputs = {f32({2}, {1, 2})};
    const auto as_it_is = interpret(*graph, inputs);
    VERIFY_DONE(as_it_is);
    QCOMPARE(as_it_is->size(), leaves);
    const auto functional = made(graph, {.train = false});
    VERIFY_DONE(functional);
    const auto found = interpret(*functional->partition.forward, inputs);
    VERIFY_DONE(found);
    QCOMPARE(found->size(), leaves);
    for (std::size_t i = 0; i < leaves; ++i) QCOMPARE(elements((*found)[i]), elements((*as_it_is)[i]));
  }

  /// What a run writes is copied, so that the archive's values stay, and nothing else is.
  void only_what_is_written_is_copied() {
    const auto graph = fx("p_w: <f32[5000][1]>, b_n: <f32[1000][1]>, x: <f32[1000][1]>",
                          "a = $add_.Tensor(b_n, x)\ns = $sum(p_w)\nm = $mul.Tensor(x, s)\nr = $relu_(m)\nreturn (r,)");
    auto program = std::make_shared<ExportedProgram>();
    program->inputs = {{ProgramInputKind::Parameter, "p_w", "w"},
                       {ProgramInputKind::Buffer, "b_n", "n"},
                       {ProgramInputKind::UserInput, "x"}};
    program->outputs = {{ProgramOutputKind::UserOutput, "r"}};
    program->tensors.emplace("w", f32({5000}, std::vector<double>(5000, 1)));
    program->tensors.emplace("n", f32({1000}, std::vector<double>(1000, 3)));
    Artefact artefact = artefact_of(*graph);
    artefact.program = program;
    TensorFile io;
    io.tensors["input.0"] = f32({1000}, std::vector<double>(1000, 2));
    RunOptions options;
    options.aot.train = false;
    options.forward = [](const Graph& g) -> Result<CompiledFn> {
      return CompiledFn([&g](std::vector<Value> values) { return interpret(g, std::move(values)); });
    };
    const std::size_t before = held_bytes();
    auto function = TrainedFunction::make(artefact, io, options);
    VERIFY_DONE(function);
    const std::size_t more = held_bytes() - before;
    QVERIFY2(more >= 4000 && more < 20000, qPrintable(QString::number(more)));
    for (const double expected : {5, 7}) {
      const auto out = function->step();
      VERIFY_DONE(out);
      QCOMPARE(elements(*out->find("buffer_after.n")), std::vector<double>(1000, expected));
    }
    QCOMPARE(elements(program->tensors.at("n")), std::vector<double>(1000, 3));
  }

  /// Layers of one input are one product, in their gradients too, and of inference their weights are joined once.
  void linears_are_packed() {
    const auto graph =
        fx("p_v: <f32[3, 4][4, 1]>, p_w: <f32[3, 4][4, 1]>, x: <f32[32, 4][4, 1]>",
           "g: <f32[32, 3][3, 1]> = $linear(x, p_v)\nu: <f32[32, 3][3, 1]> = $linear(x, p_w)\ns: <f32[32, "
           "3][3, 1]> = $silu(g)\nm: <f32[32, 3][3, 1]> = $mul.Tensor(s, u)\nreturn (m,)");
    std::vector<std::vector<double>> results[2];
    int products[2] = {};
    for (const bool packed : {false, true}) {
      AotOptions options{.requires_grad = {true, true, true}};
      options.pack_linears = packed;
      const auto trained = made(graph, options);
      VERIFY_DONE(trained);
      products[packed] = count(*trained->joint, "aten.mm.default");
      std::vector<Value> inputs;
      for (const Node* p : trained->joint->placeholders()) {
        Tensor t = *Tensor::empty(DType::Float32, *concrete(p->meta.tensor()->sizes));
        for (std::int64_t i = 0; i < t.numel(); ++i)
          t.as<float>()[i] = static_cast<float>((i * 7 + static_cast<std::int64_t>(inputs.size())) % 11) / 8 - 0.5F;
        inputs.emplace_back(std::move(t));
      }
      const auto found = interpret(*trained->joint, inputs);
      VERIFY_DONE(found);
      for (const Value& v : *found) results[packed].push_back(elements(v));
    }
    QCOMPARE(products[0], 6);
    QCOMPARE(products[1], 3);
    QCOMPARE(results[0].size(), 4U);
    QCOMPARE(results[1].size(), 4U);
    for (std::size_t r = 0; r < 4; ++r) {
      QCOMPARE(results[0][r].size(), results[1][r].size());
      for (std::size_t i = 0; i < results[0][r].size(); ++i)
        QVERIFY(std::abs(results[0][r][i] - results[1][r][i]) <= 1e-5 * (1 + std::abs(results[0][r][i])));
    }
    const auto inferred = made(graph, {.train = false, .split_constants = true, .pack_linears = true});
    VERIFY_DONE(inferred);
    QVERIFY(inferred->constants);
    QCOMPARE(count(*inferred->constants->graph, "aten.cat.default"), 1);
    QCOMPARE(count(*inferred->partition.forward, "aten.cat.default"), 0);
    QCOMPARE(count(*inferred->partition.forward, "aten.mm.default"), 1);
  }

  void associative_scans_data() {
    QTest::addColumn<QString>("size");
    QTest::addColumn<QList<double>>("x");
    QTest::addColumn<QList<double>>("y");
    QTest::addColumn<QList<double>>("gradient");  // of the sum of all y
    using L = QList<double>;
    QTest::newRow("of four") << "4" << L{1, 2, 3, 4} << L{1, 2, 6, 24} << L{33, 16, 10, 6};
    QTest::newRow("of as many as are given") << "s0" << L{2, 3, 1} << L{2, 6, 6} << L{7, 4, 6};
    QTest::newRow("of one") << "1" << L{5} << L{5} << L{1};
  }
  void associative_scans() {
    QFETCH(QString, size);
    QFETCH(QList<double>, x);
    QFETCH(QList<double>, y);
    QFETCH(QList<double>, gradient);
    const auto graph = fx("x: <f32[" + size.toStdString() + "][1]>",
                          "f = self.f\nc = torch.ops.higher_order.associative_scan(f, [x], ())\nr = c[0]\nreturn (r,)",
                          "    class f(torch.nn.Module):\n        def forward(self, a: <f32[][]>, b: <f32[][]>):\n"
                          "            m = $mul.Tensor(a, b)\n            return (m,)\n");
    Artefact artefact = artefact_of(*graph);
    TensorFile io;
    const Sizes sizes{x.size()};
    (io.tensors["input.0"] = f32(sizes, {x.begin(), x.end()})).requires_grad = true;
    io.tensors["tangent.0"] = f32(sizes, std::vector<double>(static_cast<std::size_t>(x.size()), 1));
    const auto out = run_program(artefact, io, {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
    VERIFY_DONE(out);
    const std::vector<double> found = elements(*out->find("output.0")), g = elements(*out->find("grad.input.0"));
    QCOMPARE((QList<double>(found.begin(), found.end())), y);
    QCOMPARE((QList<double>(g.begin(), g.end())), gradient);
  }

  /// Random numbers of a region are drawn once: its backward gets them. Outputs are x * r or sums of dropped rows, so
  /// that the gradient shows which numbers the backward had.
  void backwards_of_regions_that_draw_data() {
    QTest::addColumn<QString>("inputs");
    QTest::addColumn<QString>("lines");
    QTest::addColumn<QString>("graphs");
    const QString head = "    class b(torch.nn.Module):\n        def forward(self, ";
    QTest::newRow("cond") << "x: <f32[4][1]>, p: <b8[][]>"
                          << "b = self.b\nf = self.f\nc = torch.ops.higher_order.cond(p, b, f, (x,))\nr = c[0]\n"
                             "return (r,)"
                          << head +
                                 "x: <f32[4][1]>):\n            r = $rand_like(x)\n"
                                 "            m = $mul.Tensor(x, r)\n            return (m,)\n"
                                 "    class f(torch.nn.Module):\n        def forward(self, x: <f32[4][1]>):\n"
                                 "            m = $sin(x)\n            return (m,)\n";
    QTest::newRow("map") << "x: <f32[4][1]>, p: <b8[][]>"
                         << "b = self.b\nc = torch.ops.higher_order.map_impl(b, [x], [p])\nr = c[0]\nreturn (r,)"
                         << head +
                                "x: <f32[][]>, p: <b8[][]>):\n            e = $_assert_async.msg(p, 'p')\n"
                                "            r = $rand_like(x)\n"
                                "            m = $mul.Tensor(x, r)\n            return (m,)\n";
    QTest::newRow("scan") << "x: <f32[4][1]>, p: <b8[][]>"
                          << "b = self.b\nz = $full([], 0.0)\nc = torch.ops.higher_order.scan(b, [z], [x], [])\n"
                             "r = c[1]\nreturn (r,)"
                          << head +
                                 "c: <f32[][]>, x: <f32[][]>):\n            d = $native_dropout(x, 0.5, True)\n"
                                 "            v = d[0]\n            n = $add.Tensor(c, v)\n"
                                 "            s = $mul.Tensor(v, 1)\n            return (n, s)\n";
  }
  void backwards_of_regions_that_draw() {
    QFETCH(QString, inputs);
    QFETCH(QString, lines);
    QFETCH(QString, graphs);
    const auto graph = fx(inputs.toStdString(), lines.toStdString(), graphs.toStdString());
    Artefact artefact = artefact_of(*graph);
    TensorFile io;
    (io.tensors["input.0"] = f32({4}, {1, 2, 4, 8})).requires_grad = true;
    io.tensors["input.1"] = tensor(DType::Bool, {}, {1});
    io.tensors["tangent.0"] = f32({4}, {1, 1, 1, 1});
    const auto out = run_program(artefact, io, {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
    VERIFY_DONE(out);
    const std::vector<double> y = elements(*out->find("output.0")), g = elements(*out->find("grad.input.0"));
    for (std::size_t i = 0; i < 4; ++i) QCOMPARE(float(g[i] * double(1 << i)), float(y[i]));
    QVERIFY(y != std::vector<double>(4, 0));
  }

  /// As PyTorch's TwoTensor: operators act on each inner tensor.
  void declared_subclasses_are_unwrapped() {
    const auto graph = fx("L_x_: \"TwoTensor(f32[2][1]cpu)\", L_y_: \"TwoTensor(f32[2][1]cpu)\", L_z_: <f32[2][1]>",
                          "mul: \"TwoTensor(f32[2][1]cpu)\" = L_x_ * L_y_\n"
                          "sin: \"TwoTensor(f32[2][1]cpu)\" = mul.sin()\nz: <f32[2][1]> = L_z_.cos()\nreturn (sin, z)");
    Artefact artefact = artefact_of(*graph);
    TensorFile io;
    const std::map<std::string, std::vector<double>> values = {
        {"input.0.a", {1, 2}}, {"input.0.b", {3, 4}}, {"input.1.a", {0.5, 0.25}}, {"input.1.b", {2, 1}}};
    for (const auto& [key, list] : values) (io.tensors[key] = f32({2}, list)).requires_grad = true;
    io.tensors["input.2"] = f32({2}, {0, 0});
    io.tensors["tangent.0.a"] = f32({2}, {1, 1});
    io.tensors["tangent.0.b"] = f32({2}, {2, 2});
    io.metadata["subclasses"] = R"({"TwoTensor": ["a", "b"]})";
    const auto function =
        TrainedFunction::make(artefact, io, {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
    VERIFY_DONE(function);
    const Wrapper& outer = function->wrappers().front();
    QCOMPARE(name_of(outer), std::string_view("AOTDispatchSubclassWrapper"));
    QCOMPARE(summary(outer), std::string("input 0 is a TwoTensor of a and b, input 1 is a TwoTensor of a and b, "
                                         "output 0 is a TwoTensor of a and b"));
    const auto read = read_wrappers(to_json(function->wrappers()).dump());
    VERIFY_DONE(read);
    QVERIFY(*read == function->wrappers());
    const auto out = run_program(artefact, io, {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
    VERIFY_DONE(out);
    for (const std::string& part : {std::string("a"), std::string("b")}) {
      const std::vector<double>&x = values.at("input.0." + part), &y = values.at("input.1." + part);
      const Tensor *sine = out->find("output.0." + part), *gradient = out->find("grad.input.0." + part);
      QVERIFY(sine && gradient && out->find("grad.input.1." + part));
      for (std::size_t i = 0; i < 2; ++i) {
        QVERIFY(std::abs(elements(*sine)[i] - std::sin(x[i] * y[i])) < 1e-6);
        const double tangent = part == "a" ? 1 : 2;
        QVERIFY(std::abs(elements(*gradient)[i] - tangent * std::cos(x[i] * y[i]) * y[i]) < 1e-6);
      }
    }
    QCOMPARE(elements(*out->find("output.1")), (std::vector<double>{1, 1}));
    const auto as_it_is = run_as_it_is(artefact, io, {}, compile_to_interpreter);
    VERIFY_DONE(as_it_is);
    QCOMPARE(elements(*as_it_is->find("output.0.b")), elements(*out->find("output.0.b")));

    // The layer itself takes and gives lists of inner tensors.
    const BoxedFn swaps = post_compile({read->front()}, [](std::vector<Value>& inputs) -> Result<std::vector<Value>> {
      if (inputs.size() != 5) return input_error("test", "not flat");
      std::vector<Value> results = {inputs[1], inputs[0], inputs[4]};
      inputs.assign(5, Value());
      return results;
    });
    std::vector<Value> inputs = {ValueList{f32({1}, {1}), f32({1}, {2})}, ValueList{f32({1}, {3}), f32({1}, {4})},
                                 f32({1}, {5})};
    const auto swapped = swaps(inputs);
    VERIFY_DONE(swapped);
    QCOMPARE(swapped->size(), std::size_t{2});
    QCOMPARE(elements((*(*swapped)[0].get<ValueList>())[0]), std::vector<double>{2});
    QCOMPARE(inputs.size(), std::size_t{3});

    const auto mixed = fx("L_x_: \"TwoTensor(f32[2][1]cpu)\", L_z_: <f32[2][1]>",
                          "mul: \"TwoTensor(f32[2][1]cpu)\" = L_x_ * L_z_\nreturn (mul,)");
    const auto refused = TrainedFunction::make(artefact_of(*mixed), io,
                                               {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, std::string("aot.subclass"));
    io.metadata["subclasses"] = "[]";
    const auto unread =
        run_program(artefact, io, {.forward = compile_to_interpreter, .backward = compile_to_interpreter});
    QVERIFY(!unread);
    QCOMPARE(unread.error().code, std::string("io.subclasses"));
  }

  void tensor_subclasses_are_refused_by_name() {
    const auto graph = fx("L_y_: <f32[3][1]>, L_x_: \"TwoTensor(f32[3][1]cpu)\"",
                          "mul: \"TwoTensor(f32[3][1]cpu)\" = L_x_ * L_y_\nreturn (mul,)");
    const auto refused = made(graph, {});
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, std::string("aot.subclass"));
    QVERIFY(refused.error().message.find("input L_x_ is a TwoTensor") != std::string::npos);
  }

  // Text has no metas of tuples.
  void a_joint_graph_of_a_file_enters_at_its_passes() {
    const auto graph = fx("x: <f32[3, 4][4, 1]>",
                          "v = $var_mean.correction(x, [1], correction = 0, keepdim = True)\n"
                          "a: <f32[3, 1][1, 1]> = v[0]\n"
                          "b: <f32[3, 1][1, 1]> = v[1]\n"
                          "y: <f32[3, 1][1, 1]> = $mul.Tensor(a, b)\n"
                          "return (y,)");
    const auto graphs = made(graph, {.passes = false});
    VERIFY_DONE(graphs);
    auto text = parse_fx_text(print(*graphs->joint));
    VERIFY_DONE(text);
    for (const bool passes : {false, true}) {
      const auto cut = aot(**text, nullptr, {.passes = passes});
      VERIFY_DONE(cut);
      QCOMPARE(stages_of(*cut), std::string(passes ? "joint_passes partition" : "partition"));
    }
  }

  void the_joint_graph_is_kept_from_before_its_passes() {
    const auto graph =
        fx("x: <f32[3][1]>", "y: <f32[3][1]> = $mul.Tensor(x, 1)\nz: <f32[3][1]> = $sin(y)\nreturn (z,)");
    const auto graphs = made(graph, {.snapshots = true});
    VERIFY_DONE(graphs);
    QVERIFY(count(*graphs->before_joint_passes(), "aten.mul.Tensor") > count(*graphs->joint, "aten.mul.Tensor"));
    const auto without = made(graph, {.disabled = {"rewrite_joint"}});
    VERIFY_DONE(without);
    QCOMPARE(count(*without->joint, "aten.mul.Tensor"), count(*graphs->before_joint_passes(), "aten.mul.Tensor"));
  }

  // A call under no_grad is not the equal one outside of it, and gives no gradient.
  void pre_grad_passes_keep_regions_without_gradients() {
    auto graph = parse_fx_text(
        "class M(torch.nn.Module):\n"
        "    def forward(self, x: 'f32[3][1]cpu'):\n"
        "        off = torch._C._set_grad_enabled(False)\n"
        "        a: 'f32[3][1]cpu' = torch.sin(x)\n"
        "        on = torch._C._set_grad_enabled(True)\n"
        "        b: 'f32[3][1]cpu' = torch.sin(x)\n"
        "        y: 'f32[3][1]cpu' = torch.mul(a, b)\n"
        "        return (y,)\n");
    VERIFY_DONE(graph);
    for (const bool passes : {false, true}) {
      const auto graphs = made(*graph, {.passes = passes});
      VERIFY_DONE(graphs);
      QCOMPARE(count(*graphs->joint, "aten.cos.default"), 1);
      QCOMPARE(count(*graphs->joint, "aten.mul.Tensor"), 3);  // one of the forward, two of the gradient
    }
  }

  // The casts of autocast belong to the parts of a composite too, so a region outlives the pre-grad passes.
  void pre_grad_passes_keep_autocast() {
    auto graph = parse_fx_text(
        "class M(torch.nn.Module):\n"
        "    def forward(self, x: 'f32[3, 3][3, 1]cpu'):\n"
        "        enter = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, True, None)\n"
        "        a: 'bf16[3, 3][3, 1]cpu' = torch.matmul(x, x)\n"
        "        e: 'bf16[3, 3][3, 1]cpu' = torch.functional.einsum('ij,kj->ik', x, x)\n"
        "        m: 'bf16[3, 3][3, 1]cpu' = torch.ops.aten.linalg_multi_dot.default([x, x, x])\n"
        "        r: 'bf16[3, 3][3, 1]cpu' = torch.rnn_tanh_cell(x, x, x, x)\n"
        "        leave = torch.amp.autocast_mode._exit_autocast(enter)\n"
        "        b: 'f32[3, 3][3, 1]cpu' = torch.matmul(x, x)\n"
        "        return (a, b, e, m, r)\n");
    VERIFY_DONE(graph);
    for (const bool passes : {false, true}) {
      const auto graphs = made(*graph, {.train = false, .passes = passes});
      VERIFY_DONE(graphs);
      const std::vector<Arg> outputs = graphs->partition.forward->outputs();
      QCOMPARE(outputs[0].node()->meta.tensor()->dtype, DType::BFloat16);
      QCOMPARE(outputs[1].node()->meta.tensor()->dtype, DType::Float32);
      for (const std::size_t i : {2, 3, 4}) QCOMPARE(outputs[i].node()->meta.tensor()->dtype, DType::BFloat16);
    }
  }

  void dropout_that_drops_nothing_returns_its_argument() {
    const auto graph = fx("x: <f32[3][1]>", "y: <f32[3][1]> = $dropout(x, 0.5, False)\nreturn (y,)");
    const auto graphs = made(graph, {.train = false});
    VERIFY_DONE(graphs);
    const Node* output = graphs->partition.forward->outputs()[0].node();
    QVERIFY(output->is_placeholder());
  }

  void what_is_shown_is_what_runs() {
    auto graph = parse_fx_text(
        "class M(torch.nn.Module):\n"
        "    def forward(self, x: 'f32[3, 3][3, 1]cpu', y: 'f32[3, 3][3, 1]cpu'):\n"
        "        a: 'f32[3, 3][3, 1]cpu' = torch.ops.aten.mul.Tensor(x, 1)\n"
        "        b: 'f32[3, 3][3, 1]cpu' = torch.ops.aten.mm.default(a, y)\n"
        "        v: 'f32[9][1]cpu' = torch.ops.aten.view.default(x, [9])\n"
        "        c: 'f32[3, 3][3, 1]cpu' = torch.ops.aten.tanh.default(b)\n"
        "        return (v, c)\n");
    VERIFY_DONE(graph);
    TensorFile io;
    for (const char* key : {"input.0", "input.1"}) {
      auto t = Tensor::zeros(DType::Float32, Sizes{3, 3});
      VERIFY_DONE(t);
      io.tensors[key] = *t;
      io.tensors[key].requires_grad = true;
    }
    std::string ran;
    RunOptions options;
    options.forward = options.backward = [&](const Graph& compiled) -> Result<CompiledFn> {
      ran += print(compiled);
      return CompiledFn();
    };
    Artefact artefact = Artefact::of_graph(std::shared_ptr<const Graph>((*graph)->clone()));
    artefact.kind = ArtefactKind::Dynamo;
    const auto function = TrainedFunction::make(artefact, io, options);
    VERIFY_DONE(function);
    const auto shown = aot(**graph, nullptr, as_run(**graph, {.requires_grad = {true, true}}));
    VERIFY_DONE(shown);
    QCOMPARE(ran, print(*shown->partition.forward) + print(*shown->partition.backward));
    QCOMPARE(count(*shown->joint, "aten.mul.Tensor"), 0);
  }
};

QTEST_GUILESS_MAIN(TestPipeline)
#include "test_pipeline.moc"
