// The other kinds of files than FX text, on the samples of the repo.
#include <QtTest>

#include "core/base/output.h"
#include "core/base/progress.h"
#include "core/ir/print.h"
#include "core/load/file.h"
#include "core/load/fx_text.h"
#include "core/load/output_code.h"
#include "core/load/pickle.h"
#include "core/load/runnable.h"
#include "core/load/session.h"
#include "tests/load/paths.h"

using namespace partita;
using partita::testing::read_text;

namespace {

const std::string data = std::string(PARTITA_SOURCE_DIR) + "/tests/load/data/";

Loaded opened(const std::string& name) {
  auto loaded = load(data + name);
  if (!loaded) qFatal("%s", loaded.error().line().c_str());
  return *std::move(loaded);
}

}  // namespace

class TestSources : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void folder_lists_everything();
  void an_empty_file_of_tensors_says_so();
  void a_stop_within_a_file_stops_the_folder();
  void pick_prefers_one_joint_graph();
  void archive_has_graph_signature_and_weights();
  void archive_weights_are_not_copied();
  void archive_has_sub_graphs();
  void archive_of_a_tensor_subclass();
  void archive_of_quantized_weights();
  void archive_of_scales();
  void trace_log_has_every_graph();
  void trace_log_reports_damage_and_keeps_the_rest();
  void trace_log_tells_hints_and_ranges();
  void text_log_strips_its_prefix();
  void dumped_folder_gives_metas_and_inputs();
  void runnable_gives_metas();
  void runnable_of_symbols_gives_hints();
  void dumped_inputs_round_trip();
  void output_code_is_linked_to_nodes();
  void output_code_without_mappings_has_comments();
  void kernels_that_nothing_names_are_found_by_their_values();
};

void TestSources::an_empty_file_of_tensors_says_so() {
  QTemporaryDir folder;
  const std::string path = folder.filePath("state_dict.pt").toStdString();
  QVERIFY(bool(save_state_dict(path, {})));
  auto loaded = load(path);
  QVERIFY(loaded && loaded->artefacts.size() == 1);
  QCOMPARE(*loaded->artefacts[0].text(), std::string("empty\n"));
}

void TestSources::folder_lists_everything() {
  Loaded loaded = opened("");
  std::map<std::string, int> kinds;
  for (const Artefact& a : loaded.artefacts) ++kinds[std::string(kind_name(a.kind))];
  QCOMPARE(loaded.warnings.size(), 0u);
  QCOMPARE(kinds["exported"], 2);
  QCOMPARE(kinds["dynamo"], 2);
  QCOMPARE(kinds["joint"], 4);
  QCOMPARE(kinds["pre_grad"], 2);
  QCOMPARE(kinds["post_grad"], 4);
  QVERIFY(loaded.find("mlp_joint") && loaded.find("trace/0_0.aot_joint_graph") && loaded.find("mlp_joint_0/module"));
}

void TestSources::a_stop_within_a_file_stops_the_folder() {
  Progress progress;
  progress.report = [&](double, std::string_view what) { progress.stop = what == "trace.log"; };
  const auto loaded = load(data, &progress);
  QVERIFY(!loaded);
  QCOMPARE(loaded.error().fault, Fault::Cancelled);
  QCOMPARE(loaded.error().exit_code(), 5);
}

void TestSources::pick_prefers_one_joint_graph() {
  Loaded trace = opened("trace.log");
  auto joint = trace.pick("");
  QVERIFY(bool(joint));
  QCOMPARE((*joint)->id, std::string("0_0.aot_joint_graph"));
  auto absent = trace.pick("nothing");
  QVERIFY(!absent);
  QCOMPARE(absent.error().exit_code(), 2);
  QVERIFY(QString::fromStdString(absent.error().message)
              .contains("no graph 'nothing' in it; choose one with --graph: 0_0.dynamo_output_graph"));
  QVERIFY(!opened("").pick(""));
}

void TestSources::archive_has_graph_signature_and_weights() {
  Loaded loaded = opened("mlp.pt2");
  QCOMPARE(loaded.artefacts.size(), 1u);
  const Artefact& a = loaded.artefacts[0];
  QCOMPARE(a.id, std::string("exported"));
  auto graph = *a.graph();
  QCOMPARE(graph->size(), 20u);
  Node* norm = graph->find("layer_norm");
  QVERIFY(norm);
  QCOMPARE(norm->op()->name, std::string("aten.layer_norm.default"));
  QCOMPARE(norm->origin->modules, std::string("norm"));
  const ExportedProgram& p = *a.program;
  QCOMPARE(p.inputs.size(), 10u);
  QVERIFY(p.inputs[0].kind == ProgramInputKind::Parameter && p.inputs[8].kind == ProgramInputKind::UserInput);
  const Tensor* weight = p.tensor_of("p_fc1_weight");
  QVERIFY(weight);
  QCOMPARE(weight->sizes, (Sizes{64, 32}));
  QVERIFY(weight->requires_grad);
  QCOMPARE(p.sample_inputs.size(), 2u);
  QCOMPARE(p.sample_inputs[1].get<Tensor>()->dtype, DType::Int64);
  // Two graphs of one artefact are independent.
  auto other = *a.graph();
  other->set_output(Arg::tuple({}));
  QCOMPARE(graph->outputs().size(), 2u);
}

namespace {

std::string little(std::uint64_t n, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(n >> 8 * i);
  return out;
}
std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t n) {
  std::uint64_t value = 0;
  for (std::size_t i = n; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

/// The archive with its directory as archives of over 4 GiB have it: where entries are is in a field of 64 bits, and
/// with `sizes` how large they are, too.
std::string with_large_directory(const std::string& bytes, bool sizes) {
  const std::size_t end = bytes.size() - 22, count = number_at(bytes, end + 10, 2);
  std::size_t at = number_at(bytes, end + 16, 4);
  std::string out = bytes.substr(0, at);
  const std::size_t begin = out.size();
  for (std::size_t i = 0; i < count; ++i) {
    std::string entry = bytes.substr(at, 46), field;
    const std::size_t name = number_at(entry, 28, 2), extra = number_at(entry, 30, 2),
                      comment = number_at(entry, 32, 2);
    if (sizes) field += little(number_at(entry, 24, 4), 8) + little(number_at(entry, 20, 4), 8);
    field += little(number_at(entry, 42, 4), 8);
    if (sizes) entry.replace(20, 8, std::string(8, '\xff'));
    entry.replace(42, 4, std::string(4, '\xff'));
    entry.replace(30, 2, little(field.size() + 4 + extra, 2));
    out += entry + bytes.substr(at + 46, name) + bytes.substr(at + 46 + name, extra) + little(1, 2) +
           little(field.size(), 2) + field + bytes.substr(at + 46 + name + extra, comment);
    at += 46 + name + extra + comment;
  }
  const std::size_t size = out.size() - begin, end64 = out.size();
  out += "PK\x06\x06" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) + little(count, 8) +
         little(count, 8) + little(size, 8) + little(begin, 8);
  out += "PK\x06\x07" + little(0, 4) + little(end64, 8) + little(1, 4);
  return out + "PK\x05\x06" + little(0, 4) + std::string(12, '\xff') + little(0, 2);
}

}  // namespace

/// Uncompressed tensors stay in the file's memory, and their checksums are still compared.
void TestSources::archive_weights_are_not_copied() {
  std::string bytes = read_text(data + "mlp.pt2");
  for (const bool sizes : {false, true}) {
    QTemporaryDir dir;
    const std::string path = dir.filePath("large.pt2").toStdString(), large = with_large_directory(bytes, sizes);
    QVERIFY(write_file(path, large));
    const auto loaded = load(path);
    QVERIFY2(loaded, loaded ? "" : loaded.error().line().c_str());
    std::vector<const std::byte*> places;
    for (const auto& [name, tensor] : loaded->artefacts[0].program->tensors) places.push_back(tensor.storage->data());
    const auto [first, last] = std::ranges::minmax_element(places);
    QVERIFY(places.size() == 8 && static_cast<std::size_t>(*last - *first) < large.size());
  }
  const Loaded loaded = opened("mlp.pt2");
  std::vector<const std::byte*> places;
  for (const auto& [name, tensor] : loaded.artefacts[0].program->tensors) places.push_back(tensor.storage->data());
  const auto [first, last] = std::ranges::minmax_element(places);
  QVERIFY(places.size() == 8 && static_cast<std::size_t>(*last - *first) < bytes.size());

  const Storage& weight = *loaded.artefacts[0].program->tensor_of("p_fc1_weight")->storage;
  const std::size_t at = bytes.find(std::string_view(reinterpret_cast<const char*>(weight.data()), weight.bytes()));
  QVERIFY(at != std::string::npos);
  bytes[at + 100] ^= 1;
  QTemporaryDir dir;
  const std::string path = dir.filePath("damaged.pt2").toStdString();
  QVERIFY(write_file(path, bytes));
  const auto damaged = load(path);
  QVERIFY(!damaged);
  QVERIFY2(damaged.error().message.find("checksum") != std::string::npos ||
               damaged.error().message.find("CRC") != std::string::npos,
           damaged.error().line().c_str());
}

/// torch.export writes a subclass's sizes, and its class in the sample inputs only.
void TestSources::archive_of_a_tensor_subclass() {
  const Loaded loaded = opened("../two_tensor.pt2");
  QCOMPARE(loaded.warnings.size(), 1u);
  QVERIFY2(loaded.warnings[0].message.find("TwoTensor") != std::string::npos &&
               loaded.warnings[0].message.ends_with("the sample inputs were left out"),
           loaded.warnings[0].line().c_str());
  QVERIFY(loaded.artefacts[0].program->sample_inputs.empty());
  QVERIFY((*loaded.artefacts[0].graph())->find("mul"));
}

/// Weights that consist of int8 values and scales (torchao's Int8Tensor) become inputs of their own.
void TestSources::archive_of_quantized_weights() {
  const Loaded loaded = opened("../torchao.pt2");
  QVERIFY(loaded.warnings.empty());
  const Artefact& a = loaded.artefacts[0];
  std::vector<std::string> names, targets;
  const auto graph = *a.graph();
  for (const Node* n : graph->placeholders()) names.push_back(n->name());
  QCOMPARE(names[0], std::string("p_l_weight_qdata"));
  QVERIFY(std::ranges::find(names, "p_l_weight") == names.end());
  for (const ProgramInput& i : a.program->inputs) targets.push_back(i.name);
  QCOMPARE(targets, names);
  const Tensor* weight = a.program->tensor_of("p_l_weight_qdata");
  QVERIFY(weight && weight->dtype == DType::Int8 && weight->sizes == (Sizes{8, 16}));
  QCOMPARE(a.program->input("p_l_weight_scale")->target, std::string("l.weight.scale"));
}

void TestSources::archive_has_sub_graphs() {
  auto graph = *opened("cond.pt2").artefacts[0].graph();
  QCOMPARE(graph->children.size(), 2u);
  QCOMPARE(graph->children[0].first, std::string("true_graph_0"));
  Node* cond = graph->find("cond");
  QVERIFY(cond);
  // The archive does not distinguish tuples from lists.
  QCOMPARE(cond->args()[0].node()->name(), std::string("p"));
  QCOMPARE(print(cond->args()[3]), std::string("[x, p_a_bias, p_a_weight, p_b_bias, p_b_weight]"));
  QCOMPARE(annotation(graph->find("getitem")->meta), std::string("f32[4, 4][4, 1]cpu"));
}

/// The buffer is two powers of two in float8_e8m0fnu.
void TestSources::archive_of_scales() {
  const Loaded loaded = opened("../e8m0.pt2");
  QVERIFY(loaded.warnings.empty());
  const Tensor* scale = loaded.artefacts[0].program->tensor_of("b_scale");
  QVERIFY(scale);
  QCOMPARE(scale->dtype, DType::Float8E8M0FNU);
  QCOMPARE(scale->item_as_double(0), 1.0);
  QCOMPARE(scale->item_as_double(1), 2.0);
}

void TestSources::trace_log_has_every_graph() {
  Loaded loaded = opened("trace.log");
  std::map<std::string, std::size_t> sizes;
  for (const Artefact& a : loaded.artefacts)
    if (a.is_graph()) sizes[a.id] = (*a.graph())->size();
  std::map<std::string, std::size_t> expected = {
      {"0_0.dynamo_output_graph", 11},       {"0_0.before_pre_grad_graph", 11},    {"0_0.after_pre_grad_graph", 11},
      {"0_0.aot_joint_graph", 41},           {"0_0.aot_forward_graph", 18},        {"0_0.aot_backward_graph", 24},
      {"0_0.before_post_grad_graph", 18},    {"0_0.inductor_post_grad_graph", 18}, {"0_0.before_post_grad_graph_1", 24},
      {"0_0.inductor_post_grad_graph_1", 24}};
  QVERIFY(sizes == expected);
  QCOMPARE(loaded.find("0_0.aot_joint_graph")->group, std::string("0/0"));
  QVERIFY(QString::fromStdString(*loaded.find("0_0.compilation_metrics")->text()).contains("\"co_name\""));
  QVERIFY((*loaded.find("0_0.aot_forward_graph")->graph())->first()->note.starts_with("PlainAOTInput(idx="));
}

void TestSources::trace_log_reports_damage_and_keeps_the_rest() {
  std::string text = read_text(data + "trace.log");
  // A record with truncated JSON, a stray line, and a payload with one changed byte.
  std::size_t at = text.find("{\"aot_backward_graph\"");
  text.insert(at + 1, "}}");
  text.insert(0, "what is this\n");
  std::size_t joint = text.find("class inner_f");
  text[joint + 6] = 'X';
  QTemporaryDir dir;
  std::string path = dir.filePath("t.log").toStdString();
  std::ofstream(path, std::ios::binary) << text;
  auto loaded = load(path);
  QVERIFY2(bool(loaded), loaded ? "" : loaded.error().line().c_str());
  QVERIFY(loaded->find("0_0.aot_forward_graph") && !loaded->find("0_0.aot_backward_graph") &&
          loaded->find("0_0.inductor_post_grad_graph_1"));
  std::vector<std::string> messages;
  for (const Diagnostic& w : loaded->warnings) messages.push_back(w.message);
  QCOMPARE(messages.size(), 3u);
  QCOMPARE(messages[0], std::string("damaged: neither a record nor a payload"));
  QVERIFY2(messages[1].starts_with("the payload of aot_joint_graph was read, but its checksum is "),
           messages[1].c_str());
  QCOMPARE(messages[2], std::string("damaged: not a JSON object"));
}

void TestSources::text_log_strips_its_prefix() {
  Loaded loaded = opened("torch_logs.txt");
  std::vector<std::pair<std::string, std::size_t>> got;
  for (const Artefact& a : loaded.artefacts)
    if (a.is_graph()) got.emplace_back(kind_name(a.kind), (*a.graph())->size());
  QVERIFY((got == std::vector<std::pair<std::string, std::size_t>>{
                      {"joint", 19}, {"forward", 12}, {"backward", 10}, {"forward", 3}}));
}

void TestSources::dumped_folder_gives_metas_and_inputs() {
  Loaded loaded = opened("mlp_joint_0");
  const Artefact* a = loaded.find("module");
  QVERIFY(a && a->companion);
  auto graph = *a->graph();
  QCOMPARE(graph->placeholders().size(), 12u);
  QCOMPARE(annotation(graph->placeholders()[0]->meta), std::string("f32[64, 32][32, 1]cpu"));
  QCOMPARE(annotation(graph->placeholders()[9]->meta), std::string("i64[8][1]cpu"));
  QCOMPARE(a->companion->sample_inputs.size(), 12u);
  QCOMPARE(a->companion->sample_inputs[0].get<Tensor>()->sizes, (Sizes{64, 32}));
}

void TestSources::runnable_gives_metas() {
  auto graph = *opened("fx_graph_runnable.py").artefacts[0].graph();
  QCOMPARE(graph->name, std::string("Repro"));
  QCOMPARE(annotation(graph->placeholders()[0]->meta), std::string("f32[64, 32][32, 1]cpu"));
  QCOMPARE(annotation(graph->placeholders()[9]->meta), std::string("i64[8][1]cpu"));
}

void TestSources::runnable_of_symbols_gives_hints() {
  const LoadArgs args = read_load_args(R"(
def load_args(reader):
    buf0 = reader.storage(None, 8*s77*(s1 - 1) + 8, device=device(type='cuda', index=0), dtype_hint=torch.int64)
    reader.tensor(buf0, (s77, s1 - 1), (s1, 1), dtype=torch.int64, storage_offset=s1, requires_grad=True)  # primals_1
    reader.symint(6, expr='s77')  # primals_2
    reader.symint(5, expr='s1 - 1')  # primals_3
    reader.symint(3)  # primals_4
load_args._version = 0
)");
  std::vector<std::string> inputs;
  for (const Meta& meta : args.inputs) inputs.push_back(annotation(meta));
  QCOMPARE(inputs, (std::vector<std::string>{"i64[s77, s1 - 1][s1, 1]cuda:0", "Sym(s77)", "Sym(s1 - 1)", "Sym(3)"}));
  QCOMPARE(args.inputs[0].tensor()->offset, *SymExpr::parse("s1"));
  QVERIFY(args.inputs[0].tensor()->requires_grad);
  QCOMPARE(args.hints, (std::map<std::string, std::int64_t>{{"s77", 6}}));
}

void TestSources::trace_log_tells_hints_and_ranges() {
  const auto record = [](const std::string& entry, int frame) {
    return fmt::format("V1124 01:29:22.817000 7 torch/a.py:1] {{{}, \"frame_id\": {}, \"frame_compile_id\": 0}}\n",
                       entry, frame);
  };
  const std::string graph = record(R"("dynamo_output_graph": {}, "has_payload": "")", 0) +
                            "\tclass GraphModule(torch.nn.Module):\n"
                            "\t    def forward(self, s5: \"Sym(s5)\", x: \"f32[s77, s27][s27, 1]cpu\"):\n"
                            "\t        return (x,)\n";
  QTemporaryDir dir;
  const std::string path = dir.filePath("t.log").toStdString();
  QVERIFY(bool(write_file(
      path, record(R"("create_symbol": {"symbol": "s77", "val": "8", "vr": "[2, 64]", "source": "L['x']"})", 0) +
                record(R"("create_symbol": {"symbol": "s5", "val": "0", "vr": "[-int_oo, int_oo]"})", 0) +
                record(R"("create_symbol": {"symbol": "s9", "val": "3", "vr": "[2, int_oo]"})", 0) +
                record(R"("create_symbol": {"symbol": "s27", "val": "4", "vr": "[2, int_oo]"})", 1) + graph)));
  const auto loaded = load(path);
  QVERIFY(bool(loaded));
  QCOMPARE(loaded->warnings.size(), std::size_t{0});
  const auto read = *loaded->find("0_0.dynamo_output_graph")->graph();
  // Neither what the graph does not have nor what another compilation has.
  QCOMPARE(read->shapes->hints(), (std::map<std::string, std::int64_t>{{"s5", 0}, {"s77", 8}}));
  const auto ranges = read->shapes->ranges();
  QCOMPARE(ranges.at("s77").high, std::int64_t{64});
  QCOMPARE(ranges.at("s5").low, INT64_MIN);
}

void TestSources::dumped_inputs_round_trip() {
  std::string bytes = read_text(data + "mlp_joint_0/mlp_joint_0.input");
  auto inputs = read_dumped_inputs(bytes);
  QVERIFY2(bool(inputs), inputs ? "" : inputs.error().line().c_str());
  QCOMPARE(inputs->size(), 12u);
  auto written = write_dumped_inputs(*inputs);
  QVERIFY(bool(written));
  auto again = read_dumped_inputs(*written);
  QVERIFY2(bool(again), again ? "" : again.error().line().c_str());
  for (std::size_t i = 0; i < inputs->size(); ++i) QVERIFY(same_annotation((*inputs)[i], (*again)[i]));
}

void TestSources::kernels_that_nothing_names_are_found_by_their_values() {
  // PyTorch writes no mapping for a backward that is compiled when it first runs, and no comments at C++ kernels.
  Loaded loaded = opened("../inductor.log");
  const std::vector<InductorCode> mapped = inductor_code(loaded);
  std::vector<std::vector<std::string>> told;
  for (const InductorKernel& k : mapped[0].kernels) told.push_back(k.nodes);
  std::erase_if(loaded.artefacts, [](const Artefact& a) { return a.id.find("node_mappings") != std::string::npos; });
  const std::vector<InductorCode> all = inductor_code(loaded);
  const auto graph = *all[0].post_grad->graph();
  QCOMPARE(all[0].kernels.size(), told.size());
  for (std::size_t k = 0; k < told.size(); ++k) {
    const InductorKernel& kernel = all[0].kernels[k];
    if (kernel.language == "call") continue;
    QVERIFY2(kernel.link == InductorKernel::Link::Flow, kernel.name.c_str());
    // All that the mapping tells is found; views of what is read, and items of results, may be more.
    for (const std::string& node : told[k])
      QVERIFY2(std::ranges::find(kernel.nodes, node) != kernel.nodes.end(), node.c_str());
    for (const std::string& node : kernel.nodes) {
      const bool is_told = std::ranges::find(told[k], node) != told[k].end();
      const std::string_view op = graph->find(node)->op()->brief();
      QVERIFY2(is_told || op.find("view") != std::string::npos || op.find("getitem") != std::string::npos,
               node.c_str());
    }
  }
}

void TestSources::output_code_is_linked_to_nodes() {
  const Loaded loaded = opened("../inductor.log");
  const std::vector<InductorCode> all = inductor_code(loaded);
  QCOMPARE(all.size(), 1u);
  for (const InductorCode& code : all) {
    QVERIFY(code.post_grad && code.pre_grad);
    QVERIFY(!code.kernels.empty());
    const auto graph = *code.post_grad->graph();
    for (const InductorKernel& k : code.kernels) {
      QVERIFY2(k.link == InductorKernel::Link::Mapping, k.name.c_str());
      QVERIFY(!k.nodes.empty() && !k.frames.empty());
      for (const std::string& node : k.nodes) QVERIFY2(graph->find(node), node.c_str());
      QVERIFY2(code.code_of(k).find(k.name) != std::string::npos, k.name.c_str());
    }
  }
}

void TestSources::output_code_without_mappings_has_comments() {
  const std::vector<InductorKernel> kernels = read_output_code(R"(async_compile = AsyncCompile()

# Topologically Sorted Source Nodes: [out], Original ATen: [aten.gelu]
# Source node to ATen node mapping:
#   out => mul, erf
# Graph fragment:
#   %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%arg0_1, 0.5), kwargs = {})
#   %erf : [num_users=1] = call_function[target=torch.ops.aten.erf.default](args = (%mul,), kwargs = {})
triton_poi_fused_gelu_0 = async_compile.triton('triton_poi_fused_gelu_0', '''
import triton
def triton_poi_fused_gelu_0(in_ptr0):
    aten.fake(in_ptr0)
''', device_str='cuda')

cpp_fused_1 = async_compile.cpp_pybinding(['float*'], r'''
void kernel(float* p) {}
''')

def call(args):
    arg0_1, = args
    buf0 = empty_strided_cuda((1, ), (1, ), torch.int64)
    # Topologically Sorted Source Nodes: [out], Original ATen: [aten.gelu]
    stream0 = get_raw_stream(0)
    triton_poi_fused_gelu_0.run(arg0_1, buf0, 4, grid=grid(4), stream=stream0)
    del arg0_1
    cpp_fused_1(buf0)
    # Topologically Sorted Source Nodes: [linear, a.b], Original ATen: [aten.t, aten.addmm]
    # [Provenance debug handles] extern_kernels.addmm:3
    extern_kernels.addmm(primals_2, buf0, out=buf1)
    return (buf1, )
)");
  QCOMPARE(kernels.size(), 3u);
  QCOMPARE(kernels[0].name, std::string("triton_poi_fused_gelu_0"));
  QCOMPARE(kernels[0].language, std::string("triton"));
  QCOMPARE(kernels[0].nodes, (std::vector<std::string>{"mul", "erf"}));
  QCOMPARE(kernels[0].sources, std::vector<std::string>{"out"});
  QCOMPARE(kernels[0].begin, 9);
  QCOMPARE(kernels[0].end, 13);
  QCOMPARE(kernels[1].language, std::string("cpp"));
  QVERIFY(kernels[1].link == InductorKernel::Link::None);
  QCOMPARE(kernels[2].handle, std::string("extern_kernels.addmm:3"));
  QCOMPARE(kernels[2].sources, (std::vector<std::string>{"linear", "a.b"}));
}

QTEST_GUILESS_MAIN(TestSources)
#include "test_sources.moc"
