// One graph in every form that PyTorch prints, between whatever stands around it.
#include <QtTest>

#include "core/ir/print.h"
#include "core/load/fx_text.h"
#include "core/load/session.h"

using namespace partita;

namespace {

constexpr const char* module_text = R"(class GraphModule(torch.nn.Module):
    def forward(self, x, w = None):
        bias = self.layer.bias
        linear = torch._C._nn.linear(x, w, bias);  w = bias = None
        einsum = torch.functional.einsum('bi,bj->bij', linear, linear)
        getitem = einsum[slice(None, None, None), slice(1, 3, None), Ellipsis];  einsum = None
        view = getitem.view(-1, 2);  getitem = None
        sub = self.sub(view);  view = None
        div = torch.ops.aten.div.Tensor_mode(sub, 2.5, rounding_mode = 'floor');  sub = None
        to = div.to(device = device(type='cpu'), dtype = torch.float16);  div = None
        add = to + linear;  to = None
        return {'y': add, 'n': [linear, None]}
)";

constexpr const char* print_text = R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %w : torch.Tensor [num_users=1] = placeholder[target=w](default=None)
    %bias : [num_users=1] = get_attr[target=layer.bias]
    %linear : [num_users=4] = call_function[target=torch._C._nn.linear](args = (%x, %w, %bias), kwargs = {})
    %einsum : [num_users=1] = call_function[target=torch.functional.einsum](args = (bi,bj->bij, %linear, %linear), kwargs = {})
    %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%einsum, (slice(None, None, None), slice(1, 3, None), Ellipsis)), kwargs = {})
    %view : [num_users=1] = call_method[target=view](args = (%getitem, -1, 2), kwargs = {})
    %sub : [num_users=1] = call_module[target=sub](args = (%view,), kwargs = {})
    %div : [num_users=1] = call_function[target=torch.ops.aten.div.Tensor_mode](args = (%sub, 2.5), kwargs = {rounding_mode: floor})
    %to : [num_users=1] = call_method[target=to](args = (%div,), kwargs = {device: cpu, dtype: torch.float16})
    %add : [num_users=1] = call_function[target=operator.add](args = (%to, %linear), kwargs = {})
    return {'y': add, 'n': [linear, None]}
)";

constexpr const char* table_text =
    R"(opcode         name     target                                      args                                                                          kwargs
-------------  -------  ------------------------------------------  ----------------------------------------------------------------------------  ------------------------------------------------------
placeholder    x        x                                           ()                                                                            {}
placeholder    w        w                                           (None,)                                                                       {}
get_attr       bias     layer.bias                                  ()                                                                            {}
call_function  linear   <built-in function linear>                  (x, w, bias)                                                                  {}
call_function  einsum   <function einsum at 0x7f0aa8c4b060>         ('bi,bj->bij', linear, linear)                                                {}
call_function  getitem  <built-in function getitem>                 (einsum, (slice(None, None, None), slice(1, 3, None), Ellipsis))              {}
call_method    view     view                                        (getitem, -1, 2)                                                              {}
call_module    sub      sub                                         (view,)                                                                       {}
call_function  div      aten.div.Tensor_mode                        (sub, 2.5)                                                                    {'rounding_mode': 'floor'}
call_method    to       to                                          (div,)                                                                        {'device': device(type='cpu'), 'dtype': torch.float16}
call_function  add      <built-in function add>                     (to, linear)                                                                  {}
output         output   output                                      ({'y': add, 'n': [linear, None]},)                                            {}
)";

std::string method_text() {
  std::string out;
  for (const QString& line : QString(module_text).split('\n').mid(1)) out += line.mid(4).toStdString() + "\n";
  return "\n\n\n" + out;
}

/// Each line behind the prefix.
std::string behind(const char* text, const std::function<std::string(int)>& prefix) {
  std::string out;
  int n = 0;
  for (const QString& line : QString(text).trimmed().split('\n')) out += prefix(n++) + line.toStdString() + "\n";
  return out;
}

}  // namespace

class TestFxForms : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_form_is_one_graph_data();
  void every_form_is_one_graph();
  void metadata_in_a_print_is_kept();
  void graphs_of_several_processes_take_turns();
  void a_report_has_all_its_graphs();
  void classes_beside_are_sub_graphs();
  void classes_that_make_others_are_counted();
  void a_class_of_its_own_is_no_graph();
  void errors_name_the_line_data();
  void errors_name_the_line();
};

void TestFxForms::every_form_is_one_graph_data() {
  QTest::addColumn<QByteArray>("text");
  const auto row = [](const char* name, const std::string& text) {
    QTest::newRow(name) << QByteArray::fromStdString(text);
  };
  const std::string print(print_text);
  row("print", print_text);
  row("code", method_text());
  row("table", table_text);
  row("print behind words", "the graph is " + print + "and so on\n");
  row("print, indented", behind(print_text, [](int) { return "        "; }));
  row("print, quoted", behind(print_text, [](int) { return "> "; }) + "no more\n");
  row("module, quoted", behind(module_text, [](int) { return "> "; }) + "> that was it\n");
  row("module of a rank", behind(module_text, [](int) { return "[rank0]: "; }));
  row("module, timed", behind(module_text, [](int n) {
        return "2026-11-28 14:00:0" + std::to_string(n / 5) + "," + std::to_string(100 + n) + " INFO m.py:3 | ";
      }));
  row("table, timed", behind(table_text, [](int n) { return std::to_string(n) + ".5 out: "; }));
  row("module behind a logger", std::string("INFO:root:") + module_text + "INFO:root:done\n");
  row("code in a fence",
      "Code:\n\n  ```python\n" + behind(method_text().c_str(), [](int) { return "  "; }) + "  ```\n");
  row("colours", [] {
    QString text = module_text;
    return text.replace("linear", "\x1b[34mlinear\x1b[0m").replace("class ", "\x1b[1;32mclass\x1b[m ").toStdString();
  }());
  row("windows lines", QString(print_text).replace("\n", "\r\n").toStdString());
}

void TestFxForms::every_form_is_one_graph() {
  QFETCH(QByteArray, text);
  QCOMPARE(find_fx_graphs(text.toStdString()).size(), 1U);
  auto graph = parse_fx_text(text.toStdString());
  QVERIFY2(graph, graph ? "" : graph.error().line().c_str());
  auto wanted = parse_fx_text(module_text);
  QVERIFY(wanted);
  QCOMPARE(QString::fromStdString(print(**graph)), QString::fromStdString(print(**wanted)));
}

void TestFxForms::metadata_in_a_print_is_kept() {
  auto graph = parse_fx_text(
      "graph():\n    %x : [num_users=1] = placeholder[target=x]\n"
      "    %neg : Tensor \"f32[2, s0][s0, 1]cpu\"[num_users=1] = call_function[target=torch.neg](args = (%x,), kwargs "
      "= {})\n"
      "    return neg\n");
  QVERIFY2(graph, graph ? "" : graph.error().line().c_str());
  QCOMPARE(annotation((*graph)->find("neg")->meta), std::string("f32[2, s0][s0, 1]cpu"));
}

void TestFxForms::graphs_of_several_processes_take_turns() {
  const QStringList one = QString(print_text).trimmed().split('\n');
  std::string text;
  for (const QString& line : one)
    for (const char* rank : {"[rank0]: ", "[rank1]: "})
      text += rank + QString(line).replace("2.5", rank[5] == '0' ? "2.5" : "3.5").toStdString() + "\n";
  const auto found = find_fx_graphs(text);
  QCOMPARE(found.size(), 2U);
  auto first = parse_fx_text(found[0].text_of(text)), second = parse_fx_text(found[1].text_of(text));
  QVERIFY(first && second);
  QCOMPARE(*(*first)->find("div")->args()[1].get<double>(), 2.5);
  QCOMPARE(*(*second)->find("div")->args()[1].get<double>(), 3.5);
}

void TestFxForms::a_report_has_all_its_graphs() {
  const std::string text = std::string("It fails:\n\n```\n") + print_text + "```\n\nand as code\n\n```python\n" +
                           method_text() + "```\n\n| a | table |\n\n" + table_text + "\n" + module_text + "\nThanks!\n";
  const auto found = find_fx_graphs(text);
  QCOMPARE(found.size(), 4U);
  for (const FxSection& section : found) QVERIFY(parse_fx_text(section.text_of(text)));
  QCOMPARE(found[0].line, 4);
  QCOMPARE(found[1].name, std::string("forward"));
}

constexpr const char* script = R"(from torch.nn import *
class true_graph_0_0(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, a):
        sin = torch.ops.aten.sin.default(a);  a = None
        return (sin,)


class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.true_graph_0 = true_graph_0_0()
        self.false_graph_0 = false_graph_0_1()

    def forward(self, p, x):
        true_graph_0 = self.true_graph_0
        cond = torch.ops.higher_order.cond(p, true_graph_0, true_graph_0, (x,));  p = true_graph_0 = x = None
        return cond
)";

void TestFxForms::classes_beside_are_sub_graphs() {
  QCOMPARE(find_fx_graphs(script).size(), 1U);
  auto graph = parse_fx_text(script);
  QVERIFY2(graph, graph ? "" : graph.error().line().c_str());
  QCOMPARE((*graph)->name, std::string("Repro"));
  QVERIFY((*graph)->child("true_graph_0") && (*graph)->child("true_graph_0")->find("sin"));
  QVERIFY(!(*graph)->child("false_graph_0"));  // the text has no such class
}

void TestFxForms::classes_that_make_others_are_counted() {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    const std::string next = "m" + std::to_string(i + 1);
    text += "class m" + std::to_string(i) + "(torch.nn.Module):\n    def __init__(self):\n        self.a = " + next +
            "()\n        self.b = " + next + "()\n    def forward(self, x):\n        return x\n";
  }
  text += "class m40(torch.nn.Module):\n    def forward(self, x):\n        return x\n";
  const auto graph = parse_fx_text(text);
  QVERIFY(!graph);
  QVERIFY2(graph.error().message.find("too many sub graphs") != std::string::npos, graph.error().line().c_str());
  // A class that makes itself is a part of itself only.
  const auto self = parse_fx_text(
      "class m(torch.nn.Module):\n    def __init__(self):\n        self.a = m()\n    def forward(self, x):\n"
      "        return x\n");
  QVERIFY(!self && self.error().message.find("too deeply") != std::string::npos);
}

void TestFxForms::a_class_of_its_own_is_no_graph() {
  QCOMPARE(find_fx_graphs("class Model:\n    def forward(self, x):\n        return x\n").size(), 0U);
  QCOMPARE(find_fx_graphs("graph():\nnothing\n").size(), 0U);
  QCOMPARE(find_fx_graphs("see graph():\n").size(), 0U);
}

void TestFxForms::errors_name_the_line_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<int>("line");
  QTest::addColumn<QString>("says");
  const auto row = [](const char* title, const std::string& text, int line, const char* says) {
    QTest::newRow(title) << QString::fromStdString(text) << line << says;
  };
  const std::string head = "graph():\n    %x : [num_users=1] = placeholder[target=x]\n";
  row("cut off", head, 2, "'return' expected");
  row("unknown node",
      head + "    %y : [num_users=0] = call_method[target=neg](args = (%z,), kwargs = {})\n    return y\n", 3,
      "unknown node '%z'");
  row("twice", head + head.substr(9) + "    return x\n", 3, "occurs twice");
  row("no kind", head + "    %y : [num_users=0] = jump[target=neg](args = (%x,), kwargs = {})\n    return y\n", 3,
      "'jump' is no kind of node");
  row("no function",
      head + "    %y : [num_users=0] = call_function[target=a b](args = (%x,), kwargs = {})\n    return y\n", 3,
      "'a b' cannot be the target of a call_function");
  row("no method", head + "    %y : [num_users=0] = call_method[target=a.b](args = (%x,), kwargs = {})\n    return y\n",
      3, "'a.b' cannot be the target of a call_method");
  row("no parameter", "graph():\n    %x : [num_users=1] = placeholder[target=(x, y)]\n    return x\n", 2,
      "'(x, y)' cannot be the target of a placeholder");
  row("no attribute", head + "    %y : [num_users=0] = get_attr[target=a\"b]\n    return y\n", 3,
      "cannot be the target of a get_attr");
  row("no keyword",
      head + "    %y : [num_users=0] = call_method[target=to](args = (%x,), kwargs = {a b: 1})\n    return y\n", 3,
      "'a b' is no name of an argument");
  row("no users", head + "    %y = what\n    return y\n", 3, "a node expected");
  row("no name", head + "    %a b : [num_users=0] = placeholder[target=x]\n    return x\n", 3, "no name of a node");
  row("nested",
      head + "    %y : [num_users=0] = call_method[target=neg](args = (%x, " + std::string(5000, '(') +
          std::string(5000, ')') + "), kwargs = {})\n    return y\n",
      3, "nested too deeply");
  row("a call in what is returned", head + "    return exec('x')\n", 3, "is no argument");
  row("behind a prefix", behind((head + "    return z\n").c_str(), [](int) { return "| "; }), 3, "unknown name 'z'");
  row("columns", "opcode  name  target  args  kwargs\n------\nplaceholder x x () {}\n", 2, "five columns");
  row("cells", std::string(table_text).replace(std::string(table_text).find("(x, w, bias)"), 12, "[x, w, bias "), 6,
      "");
}

void TestFxForms::errors_name_the_line() {
  QFETCH(QString, text);
  QFETCH(int, line);
  QFETCH(QString, says);
  const auto graph = parse_fx_text(text.toStdString(), "a.txt");
  QVERIFY(!graph);
  QVERIFY2(QString::fromStdString(graph.error().message).contains(says), graph.error().line().c_str());
  QCOMPARE(graph.error().where.line, line);
}

QTEST_GUILESS_MAIN(TestFxForms)
#include "test_fx_forms.moc"
