// The descriptors of a functional graph's placeholders say what they are to the user, as PyTorch's do.
#include <QtTest>

#include "core/aot/aot.h"
#include "core/load/fx_text.h"

namespace partita {

class Descriptors : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void of_an_inference() {
    auto graph = parse_fx_text(
        "class M(torch.nn.Module):\n"
        "    def forward(self, x: 'f32[2, 3]', L_self_parameters_w_: 'f32[3, 3]', L_self_buffers_n_: 'f32[3]'):\n"
        "        y = torch.ops.aten.mm.default(x, L_self_parameters_w_)\n"
        "        z = torch.ops.aten.add.Tensor(y, L_self_buffers_n_)\n"
        "        return (z,)\n",
        "test.py");
    QVERIFY2(graph, graph ? "" : graph.error().line().c_str());
    auto made = aot(**graph, nullptr, {.train = false});
    QVERIFY2(made, made ? "" : made.error().line().c_str());
    const std::vector<Node*> inputs = made->partition.forward->placeholders();
    QCOMPARE(inputs.size(), std::size_t{3});
    QCOMPARE(inputs[0]->note, std::string());
    QCOMPARE(inputs[1]->note, std::string("ParamAOTInput(target='w')"));
    QCOMPARE(inputs[2]->note, std::string("BufferAOTInput(target='n')"));
  }
};

}  // namespace partita

QTEST_GUILESS_MAIN(partita::Descriptors)
#include "test_descriptors.moc"
