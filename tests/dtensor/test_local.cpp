// What one rank computes of a graph of DTensors. The collectives, and where values are divided, padded and cut, are
// those of PyTorch 2.13's own graphs (aot_eager) of the same programs.
#include <QtTest>

#include "core/dtensor/enter.h"
#include "tests/dtensor/dtensors.h"

using namespace partita;
using namespace partita::testing;

namespace {

const Mesh last_of_two{{2}, 1}, third_of_four{{2, 2}, 2};

/// "$c.all_reduce(" is torch.ops._c10d_functional.all_reduce.default(.
std::string calls(std::string text) {
  const std::string library = "$c.";
  for (std::size_t at = 0; (at = text.find(library, at)) != std::string::npos;) {
    text.replace(at, library.size(), "torch.ops._c10d_functional.");
    text.insert(text.find('(', at), ".default");
  }
  return expand(text);
}

void compare(const std::string& found, const std::string& expected) {
  QCOMPARE(QString::fromStdString(found), QString::fromStdString(calls(expected)));
}

std::string sized(const std::string& sizes) {
  return "[" + sizes + "][" + sizes.substr(3) + ", 1]";
}

/// from_local(x), redistributed, to_local. `from` and `to`: R, S0, S1 or P.
std::unique_ptr<Graph> redistribution(const std::string& from, const std::string& to, const std::string& whole,
                                      const std::string& local, const std::string& result) {
  const auto name = [](const std::string& p) { return p == "P" ? "P(sum)" : p == "R" ? p : "S(" + p.substr(1) + ")"; };
  return dtensor_graph("x: <f32" + sized(local) + ">, mesh",
                       "d: {f32" + sized(whole) + " " + name(from) + "} = from_local(x, mesh, [%" + from + "])\n" +
                           "e: {f32" + sized(whole) + " " + name(to) + "} = d.redistribute(placements = [%" + to +
                           "])\ny: <f32" + sized(result) + "> = e.to_local()\nreturn (y,)\n");
}

/// A graph of x in that placement, of 4 by 6, and one operator on it.
std::string operated(const std::string& type, const std::string& from, const std::string& local,
                     const std::string& line, const Mesh& mesh = last_of_two) {
  const auto graph =
      dtensor_graph("x: <f32" + sized(local) + ">, mesh", "d: " + type + " = from_local(x, mesh, [" + from + "])\n" +
                                                              line + "\ny = o.to_local()\nreturn (y,)\n");
  return local_body(*graph, mesh);
}

std::string code_of(const std::string& text) {
  return text.substr(0, text.find(':'));
}

}  // namespace

class TestLocal : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// A column-wise and a row-wise linear layer. The replicated bias becomes a part of the sum, but its gradient, which
  /// is that of the whole tensor, is not divided; and the input's gradient is summed once.
  void tensor_parallel() {
    const auto graph = dtensor_graph(
        "x: <f32[4, 2][2, 1]>, mesh, w: {f32[6, 2][2, 1] S(0)}, b: {f32[6][1] S(0)}, v: {f32[2, 6][6, 1] S(1)}, c: "
        "{f32[2][1] R}",
        "d: {f32[4, 2][2, 1] R} = from_local(x, mesh, (%R,), run_check = False)\n"
        "h: {f32[4, 6][6, 1] S(1)} = torch._C._nn.linear(d, w, b)\n"
        "g: {f32[4, 6][6, 1] S(1)} = torch.nn.functional.relu(h)\n"
        "o: {f32[4, 2][2, 1] P(sum)} = torch._C._nn.linear(g, v, c)\n"
        "p: {f32[4, 2][2, 1] R} = o.redistribute(placements = (%R,), async_op = True)\n"
        "y: <f32[4, 2][2, 1]> = p.to_local()\n"
        "return (y,)\n");
    compare(local_body(*graph, last_of_two),
            "t = $t(arg2_1)\naddmm = $addmm(arg3_1, arg0_1, t)\nrelu = $relu(addmm)\nt_1 = $t(arg4_1)\n"
            "div = $div.Tensor(arg5_1, 2)\naddmm_1 = $addmm(div, relu, t_1)\n"
            "all_reduce = $c.all_reduce(addmm_1, 'sum', '0')\nwait_tensor = $c.wait_tensor(all_reduce)\n"
            "return (wait_tensor,)\n");
    const std::string joint = local_body(*graph, last_of_two, true);
    const std::string backward = joint.substr(joint.find("t_2 ="));
    compare(backward,
            "t_2 = $t(t_1)\nmm = $mm(tangents_1, t_2)\nt_3 = $t(tangents_1)\nmm_1 = $mm(t_3, relu)\nt_4 = $t(mm_1)\n"
            "sum_1 = $sum.dim_IntList(tangents_1, [0], True)\nview = $view(sum_1, [2])\nt_5 = $t(t_4)\n"
            "detach_1 = $detach(detach)\nthreshold_backward = $threshold_backward(mm, detach_1, 0)\nt_6 = $t(t)\n"
            "mm_2 = $mm(threshold_backward, t_6)\nt_7 = $t(threshold_backward)\nmm_3 = $mm(t_7, primals_1)\n"
            "t_8 = $t(mm_3)\nsum_2 = $sum.dim_IntList(threshold_backward, [0], True)\nview_1 = $view(sum_2, [3])\n"
            "t_9 = $t(t_8)\nall_reduce_1 = $c.all_reduce(mm_2, 'sum', '0')\n"
            "wait_tensor_1 = $c.wait_tensor(all_reduce_1)\n"
            "return [wait_tensor, wait_tensor_1, None, t_9, view_1, t_5, view]\n");
  }

  /// The rank's own tensors are the inputs, with their sizes.
  void inputs() {
    const auto graph = dtensor_graph("w: {f32[5, 2][2, 1] S(0)}", "o: {f32[5, 2][2, 1] S(0)} = w * 2\nreturn (o,)\n");
    const auto made = must(on_rank(*graph, last_of_two));
    const Node* input = made->placeholders().at(0);
    QCOMPARE(annotation(input->meta), std::string("f32[2, 2][2, 1]cpu"));
    QCOMPARE(input->note, std::string("DTensor(f32[5, 2][2, 1]cpu, S(0))"));
    QCOMPARE(annotation(made->outputs().at(0).node()->meta), std::string("f32[2, 2][2, 1]cpu"));
  }

  void redistributions_data() {
    QTest::addColumn<QStringList>("how");
    QTest::addColumn<QString>("forward");
    const auto row = [](const char* from, const char* to, const char* whole, const char* local, const char* result,
                        const char* forward) {
      QTest::newRow(fmt::format("{} to {} of {}", from, to, whole).c_str())
          << QStringList{from, to, whole, local, result} << forward;
    };
    row("R", "S0", "4, 6", "4, 6", "2, 6",
        "slice_1 = $slice.Tensor(arg0_1, 0, 2, 4)\nclone = $clone(slice_1)\nreturn (clone,)\n");
    row("S0", "R", "4, 6", "2, 6", "4, 6",
        "all_gather_into_tensor = $c.all_gather_into_tensor(arg0_1, 2, '0')\n"
        "wait_tensor = $c.wait_tensor(all_gather_into_tensor)\nreturn (wait_tensor,)\n");
    row("S1", "R", "4, 6", "4, 3", "4, 6",
        "all_gather_into_tensor = $c.all_gather_into_tensor(arg0_1, 2, '0')\n"
        "wait_tensor = $c.wait_tensor(all_gather_into_tensor)\nslice_1 = $slice.Tensor(wait_tensor, 0, 0, 4)\n"
        "slice_2 = $slice.Tensor(wait_tensor, 0, 4, 8)\ncat = $cat([slice_1, slice_2], 1)\nreturn (cat,)\n");
    row("S0", "S1", "4, 6", "2, 6", "4, 3",
        "all_gather_into_tensor = $c.all_gather_into_tensor(arg0_1, 2, '0')\n"
        "wait_tensor = $c.wait_tensor(all_gather_into_tensor)\nslice_1 = $slice.Tensor(wait_tensor, 1, 3, 6)\n"
        "clone = $clone(slice_1, memory_format = torch.contiguous_format)\nreturn (clone,)\n");
    row("P", "R", "4, 6", "4, 6", "4, 6",
        "all_reduce = $c.all_reduce(arg0_1, 'sum', '0')\nwait_tensor = $c.wait_tensor(all_reduce)\n"
        "return (wait_tensor,)\n");
    row("P", "S1", "4, 6", "4, 6", "4, 3",
        "slice_1 = $slice.Tensor(arg0_1, 1, 0, 3)\nslice_2 = $slice.Tensor(arg0_1, 1, 3, 6)\n"
        "cat = $cat([slice_1, slice_2])\n"
        "reduce_scatter_tensor = $c.reduce_scatter_tensor(cat, 'sum', 2, '0')\n"
        "wait_tensor = $c.wait_tensor(reduce_scatter_tensor)\nreturn (wait_tensor,)\n");
    row("R", "P", "4, 6", "4, 6", "4, 6", "div = $div.Tensor(arg0_1, 2)\nreturn (div,)\n");
    // Of three rows, the first rank has two.
    row("P", "S0", "3, 6", "3, 6", "1, 6",
        "slice_1 = $slice.Tensor(arg0_1, 0, 0, 2)\nslice_2 = $slice.Tensor(arg0_1, 0, 2, 3)\n"
        "constant_pad_nd = $constant_pad_nd(slice_2, [0, 0, 0, 1], 0.0)\ncat = $cat([slice_1, constant_pad_nd])\n"
        "reduce_scatter_tensor = $c.reduce_scatter_tensor(cat, 'sum', 2, '0')\n"
        "wait_tensor = $c.wait_tensor(reduce_scatter_tensor)\nslice_3 = $slice.Tensor(wait_tensor, 0, 0, 1)\n"
        "return (slice_3,)\n");
  }
  void redistributions() {
    QFETCH(QStringList, how);
    QFETCH(QString, forward);
    std::vector<std::string> h;
    for (const QString& word : how) h.push_back(word.toStdString());
    compare(local_body(*redistribution(h[0], h[1], h[2], h[3], h[4]), last_of_two), forward.toStdString());
  }

  /// Back to where the value came from, but never to a sum.
  void gradients() {
    const auto returned = [](const char* from, const char* to, const char* local, const char* result) {
      const std::string text = local_body(*redistribution(from, to, "4, 6", local, result), last_of_two, true);
      return text.substr(text.rfind("return"));
    };
    QCOMPARE(returned("P", "R", "4, 6", "4, 6"), std::string("return [wait_tensor, tangents_1, None]\n"));
    QCOMPARE(returned("R", "P", "4, 6", "4, 6"), std::string("return [div, tangents_1, None]\n"));
    QCOMPARE(returned("S0", "R", "2, 6", "4, 6"), std::string("return [wait_tensor, clone, None]\n"));
    QCOMPARE(returned("R", "S0", "4, 6", "2, 6"), std::string("return [clone, wait_tensor, None]\n"));
  }

  /// The groups of a mesh of 2 by 2 list their ranks; nested shards are gathered from the inside.
  void two_mesh_dimensions() {
    const auto graph = dtensor_graph("x: <f32[1, 6][6, 1]>, mesh",
                                     "d: {f32[4, 6][6, 1] S(0)[0]S(0)[1]} = from_local(x, mesh, [%S0, %S0])\n"
                                     "e: {f32[4, 6][6, 1] RP(sum)} = d.redistribute(placements = [%R, %R])\n"
                                     "y: <f32[4, 6][6, 1]> = e.to_local()\nreturn (y,)\n");
    compare(local_body(*graph, third_of_four),
            "all_gather_into_tensor = $c.all_gather_into_tensor(arg0_1, 2, '[2, 3]')\n"
            "wait_tensor = $c.wait_tensor(all_gather_into_tensor)\n"
            "all_gather_into_tensor_1 = $c.all_gather_into_tensor(wait_tensor, 2, '[0, 2]')\n"
            "wait_tensor_1 = $c.wait_tensor(all_gather_into_tensor_1)\nreturn (wait_tensor_1,)\n");
  }

  void operators_data() {
    QTest::addColumn<QStringList>("how");
    QTest::addColumn<QString>("forward");
    const auto row = [](const char* name, const char* type, const char* from, const char* local, const char* line,
                        const char* forward) {
      QTest::newRow(name) << QStringList{type, from, local, line} << forward;
    };
    const char *sharded = "{f32[4, 6][6, 1] S(0)}", *summed = "{f32[4, 6][6, 1] P(sum)}";
    row("linear operators keep sums", summed, "%P", "4, 6", "o: {f32[4, 6][6, 1] P(sum)} = d * 2",
        "mul = $mul.Tensor(arg0_1, 2)\nreturn (mul,)\n");
    row("others need the values", summed, "%P", "4, 6", "o: {f32[4, 6][6, 1] R} = torch.tanh(d)",
        "all_reduce = $c.all_reduce(arg0_1, 'sum', '0')\nwait_tensor = $c.wait_tensor(all_reduce)\n"
        "tanh = $tanh(wait_tensor)\nreturn (tanh,)\n");
    row("copies need the values", summed, "%P", "4, 6", "o: {f32[24][1] R} = d.t().reshape(24)",
        "t = $t(arg0_1)\nall_reduce = $c.all_reduce(t, 'sum', '0')\nwait_tensor = $c.wait_tensor(all_reduce)\n"
        "clone = $clone(wait_tensor, memory_format = torch.contiguous_format)\n"
        "_unsafe_view = $_unsafe_view(clone, [24])\nreturn (_unsafe_view,)\n");
    row("a sum over shards", sharded, "%S0", "2, 6", "o: {f32[6][1] P(sum)} = d.sum(0)",
        "sum_1 = $sum.dim_IntList(arg0_1, [0])\nreturn (sum_1,)\n");
    row("a mean over shards", sharded, "%S0", "2, 6", "o: {f32[6][1] P(avg)} = d.mean(0)",
        "mean = $mean.dim(arg0_1, [0])\nreturn (mean,)\n");
    row("softmax over shards", sharded, "%S0", "2, 6", "o: {f32[4, 6][6, 1] R} = torch.softmax(d, 0)",
        "all_gather_into_tensor = $c.all_gather_into_tensor(arg0_1, 2, '0')\n"
        "wait_tensor = $c.wait_tensor(all_gather_into_tensor)\n_softmax = $_softmax(wait_tensor, 0, False)\n"
        "return (_softmax,)\n");
    row("a view", sharded, "%S0", "2, 6", "o: {f32[4, 2, 3][6, 3, 1] S(0)} = d.view(4, 2, 3)",
        "view = $view(arg0_1, [2, 2, 3])\nreturn (view,)\n");
    row("pieces", "{f32[4, 6][6, 1] S(1)}", "%S1", "4, 3", "o: {f32[24][1] _S(0, 4)} = d.view(24)",
        "view = $view(arg0_1, [12])\nreturn (view,)\n");
    row("a dimension of one row on a rank", "{f32[2, 6][6, 1] S(0)}", "%S0", "1, 6",
        "o: {f32[2, 6][6, 1] S(0)} = d.squeeze()", "squeeze = $squeeze.dims(arg0_1, [])\nreturn (squeeze,)\n");
  }
  void operators() {
    QFETCH(QStringList, how);
    QFETCH(QString, forward);
    compare(operated(how[0].toStdString(), how[1].toStdString(), how[2].toStdString(), how[3].toStdString()),
            forward.toStdString());
  }

  /// Rows of other ranks are zeros, so that the ranks' results add up.
  void rows_of_a_table() {
    const auto graph =
        dtensor_graph("i: <i64[3][1]>, mesh, w: {f32[6, 2][2, 1] S(0)}",
                      "d: {i64[3][1] R} = from_local(i, mesh, [%R])\n"
                      "o: {f32[3, 2][2, 1] MaskP(sum, torch.Size([6, 2]), 0)} = torch.nn.functional.embedding(d, w)\n"
                      "p: {f32[3, 2][2, 1] R} = o.redistribute(placements = [%R])\ny = p.to_local()\nreturn (y,)\n");
    compare(local_body(*graph, last_of_two),
            "lt = $lt.Scalar(arg0_1, 3)\nge = $ge.Scalar(arg0_1, 6)\nbitwise_or = $bitwise_or.Tensor(lt, ge)\n"
            "sub = $sub.Scalar(arg0_1, 3)\nmasked_fill = $masked_fill.Scalar(sub, bitwise_or, 0)\n"
            "embedding = $embedding(arg2_1, masked_fill)\nunsqueeze = $unsqueeze(bitwise_or, -1)\n"
            "masked_fill_1 = $masked_fill.Scalar(embedding, unsqueeze, 0)\n"
            "all_reduce = $c.all_reduce(masked_fill_1, 'sum', '0')\nwait_tensor = $c.wait_tensor(all_reduce)\n"
            "return (wait_tensor,)\n");
  }

  void refused_data() {
    QTest::addColumn<QStringList>("how");
    QTest::addColumn<QString>("says");
    const auto row = [](const char* line, const char* says, const char* type = "{f32[4, 6][6, 1] S(0)}",
                        const char* from = "%S0", const char* local = "2, 6") {
      QTest::newRow(line) << QStringList{type, from, local, line} << says;
    };
    row("o: {f32[4, 6][6, 1] S(0)} = torch.nn.functional.dropout(d, 0.5, True, False)", "random numbers of its own");
    row("o: {f32[4, 6][6, 1] S(0)} = d.add_(1)", "add_ writes to its argument");
    row("o: {f32[4, 6][6, 1] S(0)} = torch.flip(d, [0])", "aten.flip.default on DTensors (S(0))");
    row("o: {f32[4, 6][6, 1] R} = d * 2", "would be placed S(0) here, and is R in PyTorch");
    row("o: {f32[3, 8][8, 1] S(0)} = d.view(3, 8)", "into parts that its 2 shards cut");
    row("o: {f32[4, 6][6, 1] S(0)} = d.redistribute(placements = [%S0], forward_dtype = torch.float64)",
        "redistribute with forward_dtype");
  }
  void refused() {
    QFETCH(QStringList, how);
    QFETCH(QString, says);
    const std::string found =
        operated(how[0].toStdString(), how[1].toStdString(), how[2].toStdString(), how[3].toStdString());
    QVERIFY2(code_of(found).find('\n') == std::string::npos, found.c_str());
    QVERIFY2(found.find(says.toStdString()) != std::string::npos, found.c_str());
  }

  /// The size of the mesh is in the sizes of from_local, else in the number of ranks.
  void size_of_the_mesh() {
    const auto told = redistribution("S0", "R", "8, 6", "2, 6", "8, 6");
    QCOMPARE(must(mesh_of(*told, {}, 0)), (Sizes{4}));
    QVERIFY(!mesh_of(*told, {2, 2}, 4));
    const auto open = redistribution("P", "R", "8, 6", "8, 6", "8, 6");
    QCOMPARE(mesh_of(*open, {}, 0).error().code, std::string("dtensor.mesh"));
    QCOMPARE(must(mesh_of(*open, {}, 3)), (Sizes{3}));
    // Of 5 rows, the last of 4 ranks that has any has one.
    const auto uneven = redistribution("R", "S0", "5, 6", "5, 6", "1, 6");
    QCOMPARE(must(mesh_of(*uneven, {}, 4)), (Sizes{4}));
    QCOMPARE(code_of(local_body(*uneven, Mesh{{4}, 0})), std::string("dtensor.mesh"));
    QVERIFY(code_of(local_body(*uneven, Mesh{{4}, 2})) != "dtensor.mesh");
  }

  void two_meshes() {
    const auto graph = dtensor_graph("x: <f32[4, 6][6, 1]>, mesh, other",
                                     "d: {f32[4, 6][6, 1] P(sum)} = from_local(x, mesh, [%P])\n"
                                     "e: {f32[4, 6][6, 1] P(sum)} = from_local(x, other, [%P])\n"
                                     "y = d.to_local()\nz = e.to_local()\nreturn (y, z)\n");
    QCOMPARE(mesh_of(*graph, {}, 4).error().code, std::string("dtensor.meshes"));
  }
};

QTEST_APPLESS_MAIN(TestLocal)
#include "test_local.moc"
