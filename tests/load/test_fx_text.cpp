#include <QtTest>
#include <cmath>

#include "core/ir/print.h"
#include "core/load/fx_text.h"
#include "tests/support/same_graph.h"

using namespace partita;
using partita::testing::same_graph;

namespace {

std::string module(const std::string& parameters, const std::string& body) {
  std::string out = "class GraphModule(torch.nn.Module):\n    def forward(self" +
                    (parameters.empty() ? "" : ", " + parameters) + "):\n";
  std::string line;
  for (char c : body + "\n") {
    line += c;
    if (c != '\n') continue;
    out += "        " + line;
    line.clear();
  }
  return out;
}

}  // namespace

class TestFxText : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void statements_data();
  void statements();
  void errors_name_line_and_expectation_data();
  void errors_name_line_and_expectation();
  void a_default_is_a_literal();
  void joint_graph_takes_primals_then_tangents();
  void expanded_def_keeps_descriptors();
  void nested_modules_are_children();
  void renamed_placeholders_keep_their_target();
  void origins_and_recompute_tags();
  void tags_of_checkpointed_regions();
  void literals();
  void python_around_the_class_is_skipped();
  void a_printed_program_has_ranges();
  void symbols_are_sizes_or_integers();
  void printed_text_reads_as_the_same_graph_data();
  void printed_text_reads_as_the_same_graph();
  void in_place_statements_of_one_line_run_in_order();
};

void TestFxText::statements_data() {
  QTest::addColumn<QString>("statement");  // statement of a node y over x and n
  QTest::addColumn<int>("kind");
  QTest::addColumn<QString>("op");
  QTest::addColumn<QString>("printed");  // empty: same as the statement
  auto row = [](const char* statement, OpKind kind, const char* op, const char* printed = "") {
    QTest::newRow(statement) << QString(statement) << static_cast<int>(kind) << QString(op) << QString(printed);
  };
  row("y = torch.ops.aten.add.Tensor(x, n, alpha = 2)", OpKind::Torch, "aten.add.Tensor");
  row("y = torch.ops.higher_order.with_effects(x, torch.ops.corpus.emit.default, 'mid')", OpKind::Torch,
      "higher_order.with_effects");
  row("y = torch.nn.functional.dropout(x, 0.1, True, False)", OpKind::Function, "torch.nn.functional.dropout");
  row("y = operator.add(x, n)", OpKind::Function, "_operator.add", "y = x + n");
  row("y = x.view((2, 16, -1, 8))", OpKind::Method, "view");
  row("y = x.to(device = device(type='cuda', index=1), dtype = torch.float32)", OpKind::Method, "to");
  row("y = x + n", OpKind::Function, "_operator.add");
  row("y = x @ n", OpKind::Function, "_operator.matmul");
  row("y = x // 2", OpKind::Function, "_operator.floordiv");
  row("y = x ** 2", OpKind::Function, "_operator.pow");
  row("y = x % n", OpKind::Function, "_operator.mod");
  row("y = x & n", OpKind::Function, "_operator.and_");
  row("y = x > 0", OpKind::Function, "_operator.gt");
  row("y = x == n", OpKind::Function, "_operator.eq");
  row("y = -x", OpKind::Function, "_operator.neg");
  row("y = ~x", OpKind::Function, "_operator.invert");
  row("y = 1 - x", OpKind::Function, "_operator.sub");
  row("y = None == x", OpKind::Function, "_operator.eq");
  row("y = x[0]", OpKind::Function, "_operator.getitem");
  row("y = x[(slice(None, None, None), 1)]", OpKind::Function, "_operator.getitem");
  row("y = x[(Ellipsis, slice(None, 4, None))]", OpKind::Function, "_operator.getitem");
  row("y = x[(None, n)]", OpKind::Function, "_operator.getitem");
  row("x += 1;  y = x", OpKind::Function, "_operator.iadd");
  row("x @= n;  y = x", OpKind::Function, "_operator.imatmul");
  row("x[(slice(None, None, None), 1)] = n;  y = x", OpKind::Function, "_operator.setitem");
  row("y = self._tensor_constant0", OpKind::GetAttr, "get_attr");
  row("y = self.layers.0.weight", OpKind::GetAttr, "get_attr", "y = getattr(self.layers, \"0\").weight");
  row("y = getattr(self.layers, \"0\").weight", OpKind::GetAttr, "get_attr");
  row("y = self.fc1(x)", OpKind::Function, "self.fc1");
  row("y = x.shape", OpKind::Function, "getattr", "y = getattr(x, 'shape')");
  row("y = torch.sym_sum([n, 2])", OpKind::Function, "torch.sym_sum");
  row("y = torch.Size([n, 96])", OpKind::Function, "torch.Size");
  row("y = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, True, None)", OpKind::Function,
      "torch.amp.autocast_mode._enter_autocast");
}

// Found by resources/fuzz.
void TestFxText::printed_text_reads_as_the_same_graph_data() {
  QTest::addColumn<QByteArray>("body");
  QTest::newRow("annotation of bytes that are no text")
      << QByteArray("y: \"f32[3, 4][4, 1\xbf\xef\" = x + 1\nreturn (y,)");
  QTest::newRow("None as first operand") << QByteArray("y = None - 2\nreturn (y,)");
  QTest::newRow("a comment that is almost an origin")
      << QByteArray("# $File: File: a.py:2 in f, code: c\ny = x + 1\nreturn (y,)");
  QTest::newRow("minus of a number") << QByteArray("y = ---0 - x\nz = -(2.5) * y\nreturn (z,)");
  QTest::newRow("method of a number") << QByteArray(
      "y = 0.8214.__round__(3)\nz = -2.5.__ceil__()\nw = (-2.5).__ceil__() + 1.e2 + 1.e+2\nreturn (y, z, w)");
  QTest::newRow("module named as an unnamed call") << QByteArray("here.run(x)\ny = run.there.go(x)\nreturn (y,)");
  QTest::newRow("unnamed call named as a module") << QByteArray("y = run.there.go(x)\nhere.run(x)\nreturn (y,)");
}
void TestFxText::printed_text_reads_as_the_same_graph() {
  QFETCH(QByteArray, body);
  auto graph = parse_fx_text(module("x", body.toStdString()));
  QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
  const std::string printed = print(**graph);
  auto again = parse_fx_text(printed);
  QVERIFY2(bool(again), again ? "" : again.error().line().c_str());
  QCOMPARE(QString::fromStdString(print(**again)), QString::fromStdString(printed));
}

void TestFxText::a_default_is_a_literal() {
  QVERIFY(parse_fx_text(module("x, n = -2, m = (1, None)", "y = x + n\nreturn y")));
  const auto graph = parse_fx_text(module("x, n = torch.zeros(2)", "y = x + n\nreturn y"));
  QVERIFY(!graph);
  QVERIFY(graph.error().message.find("must be a literal") != std::string::npos);
}

void TestFxText::in_place_statements_of_one_line_run_in_order() {
  auto graph = parse_fx_text(module("x", "x += 1; x *= 2; y = x + 3; x[0] = 4; return y"));
  QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
  std::vector<std::string> ops;
  for (const Node* node : **graph) ops.push_back(node->op()->name);
  QCOMPARE(ops, (std::vector<std::string>{"placeholder", "_operator.iadd", "_operator.imul", "_operator.add",
                                          "_operator.setitem", "output"}));
}

void TestFxText::statements() {
  QFETCH(QString, statement);
  QFETCH(int, kind);
  QFETCH(QString, op);
  QFETCH(QString, printed);
  auto graph = parse_fx_text(module("x, n", statement.toStdString() + ";  x = n = None\nreturn (y,)"));
  QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
  QCOMPARE((*graph)->size(), 4u);
  Node* y = (*graph)->find("y");
  QVERIFY(y);
  QCOMPARE(static_cast<int>(y->op()->kind), kind);
  QCOMPARE(QString::fromStdString(y->op()->name), op);
  QCOMPARE(QString::fromStdString(print(*y)), printed.isEmpty() ? statement : printed);
}

void TestFxText::errors_name_line_and_expectation_data() {
  QTest::addColumn<QString>("body");
  QTest::addColumn<int>("line");
  QTest::addColumn<QString>("says");
  auto row = [](const char* name, const char* body, int line, const char* says) {
    QTest::newRow(name) << QString(body) << line << QString(says);
  };
  row("unknown name", "y = x + z\nreturn y", 3, "unknown name 'z'");
  row("unclosed call", "y = torch.relu(x\nreturn y", 4, "',' or ')' expected, found 'return'");
  row("literal as node", "y = 3\nreturn y", 3, "a call expected right of 'y ='");
  row("no return", "y = -x", 3, "'return' expected, found the end of the method");
  row("statement after return", "return x; x.foo(2)", 3, "the end of the line expected, found 'x'");
  row("keyword as name", "class = x + 1\nreturn x", 3, "a statement expected, found 'class'");
  row("attribute of a number", "y = x + 5 .real\nreturn y", 3, "a node before '.real' expected");
  row("two values on a line", "y = -x x\nreturn y", 3, "';' or the end of the line expected, found 'x'");
  row("bad annotation", "y: \"f32[2][1, 2]cpu\" = -x\nreturn y", 3, "1 sizes but 2 strides");
  row("bad device", "y = x.to(device(type='toaster!'))\nreturn y", 3, "'toaster!' is not a device");
  row("huge integer", "y = x + 99999999999999999999\nreturn y", 3, "integer 99999999999999999999 is out of range");
  row("unterminated string", "y = x.foo('abc)\nreturn y", 3, "an expression expected");
  row("positional behind keyword", "y = x.foo(a = 1, 2)\nreturn y", 3, "'name = value' expected");
  row("deep nesting", ("y = x.foo(" + std::string(5000, '(') + ")\nreturn y").c_str(), 3, "nested too deeply");
}

void TestFxText::errors_name_line_and_expectation() {
  QFETCH(QString, body);
  QFETCH(int, line);
  QFETCH(QString, says);
  auto graph = parse_fx_text(module("x", body.toStdString()), "g.py", 101);
  QVERIFY(!graph);
  QCOMPARE(graph.error().where.file, std::string("g.py"));
  QVERIFY2(QString::fromStdString(graph.error().message).contains(says), graph.error().line().c_str());
  if (says != "',' or ')' expected, found 'return'")
    QVERIFY2(graph.error().where.line <= line + 100 + 1, graph.error().line().c_str());
  QVERIFY2(graph.error().where.line >= line + 100, graph.error().line().c_str());
}

void TestFxText::joint_graph_takes_primals_then_tangents() {
  auto graph = parse_fx_text(R"(class inner_f(torch.nn.Module):
    def forward(self, primals, tangents):
        primals_1: "f32[3][1]cpu"; tangents_1: "f32[3][1]cpu"; 

        primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        # No stacktrace found for following nodes
        mul: "f32[3][1]cpu" = torch.ops.aten.mul.Tensor(primals_1, tangents_1);  primals_1 = tangents_1 = None
        return pytree.tree_unflatten([mul, None], self._out_spec)
)");
  QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
  QVERIFY((*graph)->form == GraphForm::Joint);
  QCOMPARE((*graph)->placeholders().size(), 2u);
  QCOMPARE((*graph)->placeholders()[1]->name(), std::string("tangents_1"));
  QCOMPARE(annotation((*graph)->placeholders()[0]->meta), std::string("f32[3][1]cpu"));
  QCOMPARE((*graph)->outputs().size(), 2u);
  QVERIFY((*graph)->outputs()[1].is_none());
  auto again = parse_fx_text(print(**graph));
  std::string why;
  QVERIFY2(again && same_graph(**graph, **again, &why), why.c_str());
}

void TestFxText::expanded_def_keeps_descriptors() {
  auto graph = parse_fx_text(R"(class GraphModule(torch.nn.Module):
    def forward(
        self,
        primals_1: "f32[3][1]cpu",  # PlainAOTInput(idx=0)
        mul: "f32[3][1]cpu",
    ):
        sin: "f32[3][1]cpu" = torch.ops.aten.sin.default(primals_1)
        return (
            sin,  # PlainAOTOutput(idx=0)
            mul,  # SavedForBackwardsAOTOutput(idx=0)
        )
)");
  QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
  QCOMPARE((*graph)->find("primals_1")->note, std::string("PlainAOTInput(idx=0)"));
  QCOMPARE((*graph)->find("mul")->note, std::string());
  QCOMPARE((*graph)->output()->note, std::string("PlainAOTOutput(idx=0)\nSavedForBackwardsAOTOutput(idx=0)"));
  auto joint = parse_fx_text(R"(class inner_f(torch.nn.Module):
    def forward(
        self,
        primals,
        tangents,
    ):
        primals_1: "f32[3][1]cpu"  # PlainAOTInput(idx=0)
        tangents_1: "f32[3][1]cpu"  # TangentAOTInput(output=PlainAOTOutput(idx=0))
        primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        return pytree.tree_unflatten([
            tangents_1,  # GradAOTOutput(grad_of=PlainAOTInput(idx=0))
        ], self._out_spec)
)");
  QVERIFY2(bool(joint), joint ? "" : joint.error().line().c_str());
  QCOMPARE((*joint)->find("tangents_1")->note, std::string("TangentAOTInput(output=PlainAOTOutput(idx=0))"));
  QCOMPARE((*joint)->output()->note, std::string("GradAOTOutput(grad_of=PlainAOTInput(idx=0))"));
}

void TestFxText::nested_modules_are_children() {
  auto graph = parse_fx_text(R"(class <lambda>(torch.nn.Module):
    def forward(self, p: "b8[][]cpu", x: "f32[s77][1]cpu"):
        true_graph_0 = self.true_graph_0
        cond = torch.ops.higher_order.cond(p, true_graph_0, true_graph_0, (x,));  p = true_graph_0 = x = None
        getitem: "f32[s77][1]cpu" = cond[0];  cond = None
        return (getitem,)

    class true_graph_0(torch.nn.Module):
        def forward(self, x: "f32[s77][1]cpu"):
            sub_0 = self.sub_0
            sin: "f32[s77][1]cpu" = torch.ops.aten.sin.default(x);  x = None
            return (sin,)

        class sub_0(torch.nn.Module):
            def forward(self):
                return ()
)");
  QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
  QCOMPARE((*graph)->name, std::string("<lambda>"));
  Graph* child = (*graph)->child("true_graph_0");
  QVERIFY(child);
  QCOMPARE(child->size(), 4u);
  QVERIFY(child->shapes == (*graph)->shapes);
  QVERIFY(child->child("sub_0"));
  QCOMPARE((*graph)->shapes->ranges()["s77"].low, 2);
  std::string why;
  auto again = parse_fx_text(print(**graph));
  QVERIFY2(again && same_graph(**graph, **again, &why), why.c_str());
}

void TestFxText::renamed_placeholders_keep_their_target() {
  auto graph =
      parse_fx_text(module("L_x_: \"f32[3][1]cpu\"", "l_x_ = L_x_\n\nsin = l_x_.sin();  l_x_ = None\nreturn (sin,)"));
  QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
  Node* x = (*graph)->first();
  QCOMPARE(x->name(), std::string("l_x_"));
  QCOMPARE(x->target, std::string("L_x_"));
  QCOMPARE((*graph)->size(), 3u);
}

void TestFxText::origins_and_recompute_tags() {
  auto graph =
      parse_fx_text(module("x", R"(# recompute: MUST_SAVE File: a b.py:12 in f in g, code: y = x.sin()  # in, code: z
a = -x
b = -a

# No stacktrace found for following nodes
c = -b
return c)"));
  QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
  Node *a = (*graph)->find("a"), *b = (*graph)->find("b"), *c = (*graph)->find("c");
  QCOMPARE(a->origin->file, std::string("a b.py"));
  QCOMPARE(a->origin->line, 12);
  QCOMPARE(a->origin->code, std::string("y = x.sin()  # in, code: z"));
  QVERIFY(a->recompute == Recompute::MustSave);
  QVERIFY(a->origin == b->origin);
  QVERIFY(c->origin->file.empty() && c->recompute == Recompute::Unspecified);
}

/// As torch 2.13 prints tags, with the id of the checkpointed region. What a later region reads of an earlier one is
/// saved, whether it is tagged by preference or must.
void TestFxText::tags_of_checkpointed_regions() {
  auto graph = parse_fx_text(module("x", R"(# ac_graph_id: 3 - PREFER_RECOMPUTE File: m.py:1 in f, code: a = -x
a = -x
b = -a

# Annotation: {'recompute': 'MUST_SAVE'} ac_graph_id: 4 - MUST_RECOMPUTE File: m.py:2 in f, code: c = b - a
c = -b
d = -c

# ac_graph_id: 4 - PREFER_SAVE No stacktrace found for following nodes
e = -d

# ac_graph_id: 5 File: m.py:3 in f, code: g
g = -e

# File: m.py:4 in f, code: h
h = -a
return (g, h))"));
  QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
  const auto tag = [&](const char* name) { return (*graph)->find(name)->recompute; };
  QVERIFY(tag("a") == Recompute::PreferRecompute);
  QVERIFY(tag("b") == Recompute::MustSave);  // the border of region 3
  QVERIFY(tag("c") == Recompute::MustRecompute && tag("d") == Recompute::MustRecompute);
  QVERIFY(tag("e") == Recompute::PreferSave);
  QVERIFY(tag("g") == Recompute::Unspecified && tag("h") == Recompute::Unspecified);
  // The same is read back from what is printed, also tags that no file wrote.
  auto again = parse_fx_text(print(**graph));
  QVERIFY2(bool(again), again ? "" : again.error().line().c_str());
  for (Node* n : **graph) QVERIFY((*again)->find(n->name())->recompute == n->recompute);
  (*graph)->find("h")->recompute = Recompute::MustRecompute;
  (*graph)->find("h")->origin = nullptr;
  again = parse_fx_text(print(**graph));
  QVERIFY2(bool(again), again ? "" : again.error().line().c_str());
  QVERIFY((*again)->find("h")->recompute == Recompute::MustRecompute);
}

void TestFxText::literals() {
  auto graph = parse_fx_text(module(
      "x",
      R"(y = torch.f(-inf, nan, 1e-05, 9223372036854775807, -9223372036854775808, 1j, (1+2j), (-0-1j), 'it\'s', "q", None, True, torch.float32, torch.strided, torch.channels_last, device(type='cpu'), [None, x], (x,), (), {'a': x}, torch.Size([2, 3]), torch.foo.BAR)
return y)"));
  QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
  const Args& a = (*graph)->find("y")->args();
  QCOMPARE(a.size(), 22u);
  QCOMPARE(*a[0].get<double>(), -HUGE_VAL);
  QVERIFY(std::isnan(*a[1].get<double>()));
  QCOMPARE(*a[2].get<double>(), 1e-5);
  QCOMPARE(*a[3].get<std::int64_t>(), INT64_MAX);
  QCOMPARE(*a[4].get<std::int64_t>(), INT64_MIN);
  QCOMPARE(*a[5].get<std::complex<double>>(), std::complex<double>(0, 1));
  QCOMPARE(*a[6].get<std::complex<double>>(), std::complex<double>(1, 2));
  QCOMPARE(*a[8].get<std::string>(), std::string("it's"));
  QVERIFY(*a[12].get<DType>() == DType::Float32);
  QVERIFY(*a[13].get<Layout>() == Layout::Strided);
  QVERIFY(*a[14].get<MemoryFormat>() == MemoryFormat::ChannelsLast);
  QCOMPARE(a[16].get<ArgList>()->items[1].node()->name(), std::string("x"));
  QCOMPARE(a[19].get<ArgDict>()->items[0].first, std::string("a"));
  QCOMPARE(a[20].get<ArgList>()->items.size(), 2u);
  QCOMPARE(a[21].get<ArgName>()->text, std::string("torch.foo.BAR"));
  auto again = parse_fx_text(print(**graph));
  std::string why;
  QVERIFY2(again && same_graph(**graph, **again, &why), why.c_str());
}

void TestFxText::symbols_are_sizes_or_integers() {
  auto graph = parse_fx_text(R"text(
class GraphModule(torch.nn.Module):
    def forward(self, s1: "Sym(s1)", s2: "Sym(s2)", s3: "Sym(s3)", x: "f32[s1, 4*s3]"):
        y: "f32[s2]" = torch.ops.aten.ones.default([s2])
        return (x, y, s3)
)text");
  QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
  const auto ranges = (*graph)->shapes->ranges();
  QCOMPARE(ranges.at("s1").low, 2);
  QCOMPARE(ranges.at("s2").low, 0);
  QCOMPARE(ranges.at("s3").low, INT64_MIN);
}

void TestFxText::a_printed_program_has_ranges() {
  auto graph = parse_fx_text(R"text(ExportedProgram:
    class GraphModule(torch.nn.Module):
        def forward(self, x: "f32[s77, 4]", y: "i64[]"):
            # File: /home/me/model.py:7 in forward, code: n = y.item()
            item: "Sym(u0)" = torch.ops.aten.item.default(y);  y = None
            ge_1: "Sym(u0 >= 0)" = item >= 0
            _assert_scalar_default = torch.ops.aten._assert_scalar.default(ge_1, "Runtime assertion failed for expression u0 >= 0 on node 'ge_1'");  ge_1 = _assert_scalar_default = None
            ones: "f32[u0]" = torch.ops.aten.ones.default([item], device = device(type='cpu'), pin_memory = False);  item = None
            true_graph_0 = self.true_graph_0
            return (x, ones)
    
        class true_graph_0(torch.nn.Module):
            def forward(self, x: "f32[s77, 4]"):
                sin: "f32[s77, 4]" = torch.ops.aten.sin.default(x);  x = None
                return (sin,)
    
Graph signature: 
    # inputs
    x: USER_INPUT
    y: USER_INPUT
    
    # outputs
    ones: USER_OUTPUT
    
Range constraints: {u0: VR[0, 5], u1: VR[-3, int_oo], s77: VR[2, 100]}
)text");
  QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
  QCOMPARE((*graph)->size(), 8u);
  QVERIFY((*graph)->child("true_graph_0"));
  const auto ranges = (*graph)->shapes->ranges();
  QCOMPARE(ranges.at("u0").high, 5);
  QCOMPARE(ranges.at("u1").low, -3);
  QCOMPARE(ranges.at("u1").high, INT64_MAX);
  QCOMPARE(ranges.at("s77").high, 100);
  QCOMPARE((*graph)->shapes->statically(*SymExpr::parse("u0 <= 5")), std::optional(true));
}

void TestFxText::python_around_the_class_is_skipped() {
  auto graph = parse_fx_text(R"(
import torch
from torch.nn import *
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.true_graph_0 = <lambda>()

    def forward(self, a, b = 2, *rest) -> torch.Tensor:
        add = a + b
        return add

def load_args(reader):
    buf0 = reader.storage(None, 128)
)");
  QVERIFY2(bool(graph), graph ? "" : graph.error().line().c_str());
  QCOMPARE((*graph)->name, std::string("Repro"));
  QCOMPARE((*graph)->size(), 5u);
  QCOMPARE((*graph)->find("rest")->target, std::string("*rest"));
  std::string why;
  auto again = parse_fx_text(print(**graph));
  QVERIFY2(again && same_graph(**graph, **again, &why), why.c_str());
  QCOMPARE(find_fx_graphs("x = 1\n").size(), 0u);
}

QTEST_GUILESS_MAIN(TestFxText)
#include "test_fx_text.moc"
