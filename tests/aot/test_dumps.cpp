// Files written for PyTorch: drawings, plain code, module folders, torch.save files. Expected texts are PyTorch 2.13's
// (pydot 4) for the same graph.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <sstream>

#include "core/aot/dump_folder.h"
#include "core/aot/graph_io.h"
#include "core/interp/random_values.h"
#include "core/ir/fx_dot.h"
#include "core/ir/print.h"
#include "core/load/pickle.h"
#include "core/load/session.h"
#include "tests/support/fx.h"
#include "tests/support/result.h"
#include "tests/support/values.h"

using namespace partita;

namespace {

std::unique_ptr<Graph> graph() {
  return testing::fx("x_1: <f32[2, 3][3, 1]>",
                     "sort = $sort(x_1)\ngetitem: <f32[2, 3][3, 1]> = sort[0]\ngetitem_1: <i64[2, 3][3, 1]> = sort[1]\n"
                     "constant_pad_nd: <f32[2, 5][5, 1]> = $constant_pad_nd(getitem, [1, 1], inf)\n"
                     "cat: <f32[2, 6][6, 1]> = $cat([x_1, x_1], 1)\n"
                     "_to_copy: <f64[2, 3][3, 1]> = $_to_copy(x_1, dtype = torch.float64)\n"
                     "full: <f32[2, 3][3, 1]> = $full([2, 3], 1.5, device = device(type='cpu'), pin_memory = False)\n"
                     "return (constant_pad_nd, cat, _to_copy, full)");
}

constexpr const char* code_text = R"(


def forward(self, x_1):
    sort = torch.ops.aten.sort.default(x_1)
    getitem = sort[0]
    getitem_1 = sort[1];  sort = getitem_1 = None
    constant_pad_nd = torch.ops.aten.constant_pad_nd.default(getitem, [1, 1], inf);  getitem = None
    cat = torch.ops.aten.cat.default([x_1, x_1], 1)
    _to_copy = torch.ops.aten._to_copy.default(x_1, dtype = torch.float64);  x_1 = None
    full = torch.ops.aten.full.default([2, 3], 1.5, device = device(type='cpu'), pin_memory = False)
    return (constant_pad_nd, cat, _to_copy, full)
    )";

constexpr const char* dot_lines[] = {
    R"(digraph fx_graph {)",
    R"(rankdir=TB;)",
    R"(x_1 [label="{name=%x_1|op_code=placeholder\n|target=x_1\n|num_users=3\n}", shape=record, fillcolor="AliceBlue", style="filled,rounded", fontcolor="#000000"];)",
    R"(sort [label="{name=%sort|op_code=call_function\n|target=torch.ops.aten.sort.default\n|num_users=2\n}", shape=record, fillcolor=Thistle1, style="filled,rounded", fontcolor="#000000"];)",
    R"(getitem [label="{name=%getitem|op_code=call_function\n|target=_operator.getitem\n|args=(0,)|num_users=1\n}", shape=record, fillcolor=LavenderBlush1, style="filled,rounded", fontcolor="#000000"];)",
    R"(getitem_1 [label="{name=%getitem_1|op_code=call_function\n|target=_operator.getitem\n|args=(1,)|num_users=0\n}", shape=record, fillcolor=LavenderBlush1, style="filled,rounded", fontcolor="#000000"];)",
    R"(constant_pad_nd [label="{name=%constant_pad_nd|op_code=call_function\n|target=torch.ops.aten.constant_pad_nd.default\n|args=(\l[1, 1],\ninf,\n)\l|num_users=1\n}", shape=record, fillcolor=LavenderBlush1, style="filled,rounded", fontcolor="#000000"];)",
    R"(cat [label="{name=%cat|op_code=call_function\n|target=torch.ops.aten.cat.default\n|args=(1,)|num_users=1\n}", shape=record, fillcolor=PeachPuff1, style="filled,rounded", fontcolor="#000000"];)",
    R"(_to_copy [label="{name=%_to_copy|op_code=call_function\n|target=torch.ops.aten._to_copy.default\n|kwargs=\{dtype: torch.float64,\}|num_users=1\n}", shape=record, fillcolor=Thistle1, style="filled,rounded", fontcolor="#000000"];)",
    R"(full [label="{name=%full|op_code=call_function\n|target=torch.ops.aten.full.default\n|args=(\l[2, 3],\n1.5,\n)\l|kwargs=\{\ldevice: cpu,\npin_memory: False,\n\}\l|num_users=1\n}", shape=record, fillcolor=LightSkyBlue, style="filled,rounded", fontcolor="#000000"];)",
    R"(output [label="{name=%output|op_code=output\n|target=output\n|num_users=0\n}", shape=record, fillcolor=PowderBlue, style="filled,rounded", fontcolor="#000000"];)",
    R"(x_1 -> sort;)",
    R"(x_1 -> cat;)",
    R"(x_1 -> _to_copy;)",
    R"(sort -> getitem;)",
    R"(sort -> getitem_1;)",
    R"(getitem -> constant_pad_nd;)",
    R"(constant_pad_nd -> output;)",
    R"(cat -> output;)",
    R"(_to_copy -> output;)",
    R"(full -> output;)",
    R"(})",
};

}  // namespace

class TestDumps : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void plain_code_is_graph_modules_code() { QCOMPARE(plain_code(*graph()), std::string(code_text)); }

  void drawing_is_the_graph_drawers() {
    const QStringList lines = QString::fromStdString(to_fx_dot(*graph())).split('\n', Qt::SkipEmptyParts);
    for (qsizetype i = 0; i < lines.size() && i < static_cast<qsizetype>(std::size(dot_lines)); ++i)
      QCOMPARE(lines[i], QString(dot_lines[i]));
    QCOMPARE(lines.size(), static_cast<qsizetype>(std::size(dot_lines)));
  }

  void state_dict_round_trips() {
    QTemporaryDir dir;
    const std::string path = dir.filePath("state_dict.pt").toStdString();
    QVERIFY_RESULT(save_state_dict(path, {{"w", testing::f32({2, 2}, {1, 2, 3, 4})}, {"n", testing::i64({}, {7})}}));
    std::ifstream in(path, std::ios::binary);
    std::stringstream bytes;
    bytes << in.rdbuf();
    const auto text = std::make_shared<const std::string>(bytes.str());
    const auto back = read_torch_save(*text, text);
    QVERIFY_RESULT(back);
    const auto* dict = back->root->get<PickleDict>();
    QVERIFY(dict);
    QCOMPARE(dict->items.size(), std::size_t{2});
    QCOMPARE(*dict->items[0].first->get<std::string>(), std::string("w"));
    QCOMPARE(testing::elements(Value(*dict->items[0].second->get<Tensor>())), (std::vector<double>{1, 2, 3, 4}));
    QCOMPARE(testing::elements(Value(*dict->items[1].second->get<Tensor>())), (std::vector<double>{7}));
  }

  void inputs_are_made_as_get_inputs_makes_them() {
    TensorMeta floats = TensorMeta::contiguous(DType::Float32, {50, 20});
    floats.strides = {1, 50};
    const auto made = get_input(floats, 1);
    QVERIFY_RESULT(made);
    QCOMPARE(made->get<Tensor>()->strides, (Sizes{1, 50}));
    double sum = 0;
    for (const double x : testing::elements(*made)) {
      QVERIFY(x >= 0 && x < 1);
      sum += x;
    }
    QVERIFY(std::abs(sum / 1000 - 0.5) < 0.05);
    const auto whole = get_input(TensorMeta::contiguous(DType::Int64, {3}), 1);
    QVERIFY_RESULT(whole);
    QCOMPARE(testing::elements(*whole), (std::vector<double>{0, 0, 0}));
    QVERIFY(!get_input(Meta(), 1));
  }

  void dumped_graph_is_read_back() {
    QTemporaryDir dir;
    const std::vector<Value> inputs{testing::f32({2, 3}, {3, 1, 2, 6, 5, 4})};
    QVERIFY_RESULT(dump_graph(*graph(), dir.path().toStdString(), "net", "forward", 0, &inputs));
    const auto loaded = partita::load(dir.filePath("net").toStdString());
    QVERIFY_RESULT(loaded);
    const auto artefact = loaded->pick("");
    QVERIFY_RESULT(artefact);
    QVERIFY((*artefact)->companion);
    QCOMPARE((*artefact)->companion->placeholders.size(), std::size_t{1});
    QCOMPARE(testing::elements((*artefact)->companion->sample_inputs.at(0)), testing::elements(inputs[0]));
    const auto read = (*artefact)->graph();
    QVERIFY_RESULT(read);
    QCOMPARE(plain_code(**read), std::string(code_text));
    const TensorFile own = *own_inputs(**artefact);
    QCOMPARE(testing::elements(own.tensors.at("input.0")), testing::elements(inputs[0]));
    QVERIFY(own.storages.empty());
  }

  void values_beside_a_graph_share_their_memory() {
    const Value whole = testing::f32({4}, {1, 2, 3, 4});
    Tensor part = *whole.get<Tensor>();
    part.sizes = {2};
    part.offset = 2;
    auto companion = std::make_shared<Companion>();
    companion->sample_inputs = {whole, Value(part), Value(std::int64_t{7}), testing::f32({1}, {5})};
    Artefact artefact;
    QVERIFY(own_inputs(artefact)->tensors.empty());
    artefact.companion = companion;
    const TensorFile own = *own_inputs(artefact);
    QCOMPARE(own.tensors.size(), std::size_t{4});
    QCOMPARE(*own.tensors.at("input.2").as<std::int64_t>(), 7);
    QCOMPARE(own.storages.size(), std::size_t{2});
    QVERIFY((own.storages.at("input.1") == SharedMemory{"storage.0", 2}));
    companion->sample_inputs.emplace_back();  // None has no place in a file of tensors
    QVERIFY(own_inputs(artefact)->tensors.empty());
  }
};

QTEST_GUILESS_MAIN(TestDumps)
#include "test_dumps.moc"
