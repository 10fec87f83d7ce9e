// Calls whose arguments do not fit together, minified from findings of tests/fuzz. Each must be refused with a message
// before memory is touched: by inference where sizes are known, and so by every compiler.
#include <QTest>
#include <limits>

#include "core/base/config.h"
#include "core/ir/graph.h"
#include "core/ops/record/record.h"

using namespace partita;

namespace {

struct Row {
  const char* op;
  std::vector<Sizes> tensors;  ///< f32 arguments that come before the others
  Args others;
  const char* why;  ///< part of the message; "" if the words come from elsewhere
};

Arg ints(std::vector<Arg> items) {
  return Arg::list(std::move(items));
}

std::vector<Row> rows() {
  const Arg none;
  return {
      {"aten.narrow.default", {{}}, {0, 0, 1}, "0-dim"},
      {"aten.narrow_copy.default", {{}}, {0, 0, 0}, "0-dim"},
      {"aten.narrow_copy.default", {{4}}, {0, 1, -1}, "non-negative"},
      {"aten.narrow.default", {{4}}, {0, -7, 1}, "out of range"},
      {"aten.tensor_split.sections", {{}}, {1, 0}, "at least a 1-dimensional"},
      {"aten.tensor_split.indices", {{}}, {ints({1}), 0}, "at least a 1-dimensional"},
      {"aten.tensor_split.sections", {{4}}, {100000007, 0}, "--graph-limit"},
      {"aten.chunk.default", {{0}}, {std::int64_t{1} << 60, 0}, "--graph-limit"},
      {"aten.max_pool2d_with_indices.default",
       {{1, 6, 6}},
       {ints({3, 3}), ints({2, 1}), ints({1, 1}), ints({INT64_MAX, 2})},
       "beyond 64 bits"},
      {"aten.im2col.default",
       {{3, 5, 5}},
       {ints({2, 2}), ints({INT64_MAX, 1}), ints({1, 1}), ints({1, 1})},
       "sliding blocks"},
      {"aten.im2col.default",
       {{3, 5, 5}},
       {ints({2, 3}), ints({1, 1}), ints({1, 1}), ints({INT64_MAX, 2})},
       "beyond 64 bits"},
      {"aten.upsample_nearest2d.vec", {{2, 3, 4, 4}}, {ints({3, INT64_MAX}), none}, "beyond 64 bits"},
      {"aten.upsample_nearest3d.default", {{2, 3, 4, 4, 4}}, {ints({6, 6, 6}), 1e-300, 1.7, 1.7}, "beyond 64 bits"},
      {"aten.upsample_bicubic2d.default", {{2, 3, 4, 4}}, {ints({2, 2}), false, 0.6, 1e-300}, "beyond 64 bits"},
      {"aten.constant_pad_nd.default", {{5, 6, 7}}, {ints({0, 0, -7, 4})}, "non-negative"},
      {"aten._safe_softmax.default", {{}}, {1}, "out of range"},
      {"aten.diag_embed.default", {{3}}, {INT64_MIN}, "beyond 64 bits"},
      {"aten.view.dtype", {{8, 3}}, {DType::Float64}, "divisible by 2"},
      {"aten.unflatten.int", {{3}}, {0, ints({})}, "non-empty"},
      {"aten.unflatten.int", {{}}, {0, ints({1})}, "no dimensions"},
      {"aten.tensordot.default", {{}, {}}, {ints({0}), ints({0})}, "no dimensions"},
      {"aten.tensordot.default", {{2, 3}, {2, 3}}, {ints({2}), ints({1})}, "out of range"},
      {"aten.linalg_cross.default", {{}, {}}, {}, "no dimensions"},
      {"aten.outer.default", {{}, {3}}, {}, "Expected 1-D"},
      {"aten.ger.default", {{2}, {}}, {}, "Expected 1-D"},
      {"aten.outer.default", {{2, 3}, {3}}, {}, "Expected 1-D"},
      {"aten._cdist_backward.default", {{}, {3, 4}, {3, 4}, {3, 3}}, {2.0}, ""},
      {"prims.real.default", {{2}}, {}, "Only complex dtype"},
      {"prims.imag.default", {{2}}, {}, "Only complex dtype"},
      {"prims.conj.default", {{2}}, {}, "Expected complex dtype"},
      {"prims.conj_physical.default", {{2}}, {}, "only defined for complex"},
      {"aten._cdist_backward.default", {{3, 2}, {3, 4}, {3, 4}, {3, 3}}, {2.0}, "per pair"},
      {"aten._pdist_backward.default", {{2}, {3, 4}}, {2.0}, ""},
      {"aten.adaptive_max_pool2d.default", {{2, 4, 0, 6}}, {ints({1, 1})}, "dimension 2 is empty"},
      {"aten._adaptive_avg_pool2d.default", {{2, 4, 0, 6}}, {ints({2, 2})}, "dimension 2 is empty"},
      {"aten.adaptive_max_pool2d_backward.default", {{3, 1, 1}, {2, 5, 5}, {3, 1, 1}}, {}, "channels"},
      {"aten._adaptive_avg_pool2d_backward.default", {{}, {}}, {}, "3D or 4D"},
      {"aten._adaptive_avg_pool2d_backward.default", {{2, 3, 4}, {3, 5, 5}}, {}, "channels"},
      {"aten._adaptive_avg_pool3d_backward.default", {{2, 3, 4}, {3, 5, 5}}, {}, "4D or 5D"},
      {"aten.replication_pad1d.default", {{3}}, {ints({1, 1})}, "Expected 2D or 3D"},
      {"aten.replication_pad1d.default", {{2, 0}}, {ints({1, 1})}, "non-zero dimensions"},
      {"aten.reflection_pad1d.default", {{2, 3}}, {ints({3, 1})}, "less than"},
      {"aten.reflection_pad1d_backward.default", {{2, 6}, {2, 3}}, {ints({1, 1})}, "grad_output"},
      {"aten.slice_backward.default", {{7}}, {ints({3, 4}), 0, 0, 2, 1}, ""},
      {"aten.select_backward.default", {{2, 2}}, {ints({3, 4}), 0, 1}, ""},
      {"aten.unfold_backward.default", {{3, 4}}, {ints({0, 2}), 0, 3, 0}, ""},
      {"aten.slice_scatter.default", {{3, 4}, {1, 4}}, {0, 0, 2, 1}, "equal to the view"},
      {"aten.native_layer_norm.default", {{33}}, {ints({32}), none, none, 1e-5}, "normalized_shape"},
      {"aten.native_group_norm.default", {{2, 4, 3}, {3}, {4}}, {2, 4, 3, 2, 1e-5}, "Expected weight to be a vector"},
      {"aten.cross_entropy_loss.default", {{3, 5}, {3, 5}, {4}}, {}, "either for all 5 classes"},
      {"aten.histogramdd.int_bins", {{4}}, {1}, "at least 2"},
      {"aten._histogramdd_bin_edges.default", {{3, 1}}, {ints({-1})}, "bins must be > 0"},
      {"aten._histogramdd_bin_edges.default", {{3, 1}}, {ints({INT64_MAX})}, "beyond 64 bits"},
      {"aten.arange.start_step", {}, {2.1, -std::numeric_limits<double>::infinity(), -1.0}, "unsupported range"},
      {"aten.arange.start_step", {}, {0.0, 1e300, 1.0}, "invalid size"},
      {"aten.mode.default", {{0}}, {0, false}, "non-zero size"},
      {"aten._softmax.default", {{3}}, {0, true}, "Half type only"},
      {"aten.linalg_matrix_rank.atol_rtol_float", {{}}, {}, "at least 2"},
      {"aten.avg_pool2d.default", {{1, 4, 4}}, {ints({})}, "kernel_size"},
      {"aten.embedding_bag.padding_idx", {{}, {1}, {1}}, {false, 0, false, none, false, -2}, "2-D"},
      {"aten.embedding_bag.padding_idx", {{3, 4}, {1}, {1}}, {false, 0, false, none, false, -5}, "-3 through 2"},
      {"aten.native_group_norm.default", {{}}, {none, none, 1, -1, -1, 1, 1e-5}, "non-negative"},
      {"aten.native_group_norm.default", {{12}}, {none, none, 2, 2, 4, 1, 1e-5}, "N * C * HxW = 16 elements"},
      {"aten.native_group_norm_backward.default",
       {{12}, {12}, {1}, {2}},
       {none, 2, 2, 3, 1, ints({true, true, true})},
       "mean"},
      {"aten.convolution.default",
       {{1, 4, 8, 5}, {2, 4, 1, 1}, {3}},
       {ints({1, 1}), ints({0, 0}), ints({1, 1}), false, ints({0, 0}), 1},
       "expected bias to be 1-dimensional with 2 elements"},
      {"aten._trilinear.default", {{8}, {5, 8}, {8, 5}}, {ints({0, 2}), ints({0}), ints({1}), ints({0, 1, 2})}, ""},
      {"aten._trilinear.default",
       {{7, 2, 1, 3}, {7, 2, 1, 3}, {7, 2, 1, 1}},
       {ints({1}), ints({2}), ints({2}), ints({1}), 2},
       "the last operand has size 1"},
      {"quantized_decomposed.quantize_per_channel.default", {{}, {2}, {2}}, {-1, 0, 127, DType::Int8}, "no dimensions"},
      {"aten.glu_backward.default", {{3}, {4}}, {0}, ""},
      {"aten.max_pool2d_with_indices.default", {{2, 0, 4}}, {ints({2, 2}), ints({2, 1}), ints({1, 1})}, "is empty"},
      {"prims._low_memory_max_pool_with_offsets.default",
       {{2, 0, 4}},
       {ints({2, 2}), ints({2, 1}), ints({1, 1}), ints({1, 1}), false},
       "is empty"},
      {"aten._fft_r2c.default", {{2, 0}}, {ints({1}), 2, true}, "data points (0)"},
      {"aten._fft_r2c.default", {{}}, {ints({0}), 2, true}, "no dimensions"},
      {"aten._fft_r2c.default", {{2, 4}}, {ints({1, -1}), 2, true}, "unique"},
      {"aten.upsample_nearest1d.default", {{2, 0, 4}}, {ints({4})}, "Non-empty 3D"},
      {"aten.bilinear.default", {{3}, {4}, {2, 3, 4}, {}}, {}, "bias size"},
      {"aten.multi_margin_loss_backward.default", {{}, {2, 4}, {1}}, {1, 1.0, none, 1}, "target"},
      {"aten.max.dim", {{3, 0}}, {1}, "max(): Expected reduction dim 1 to have non-zero size"},
      {"aten.amax.default", {{0, 3}}, {ints({0})}, "amax(): Expected reduction dim 0 to have non-zero size"},
      {"aten.argmin.default", {{0}}, {}, "argmin(): Expected reduction dim 0 to have non-zero size"},
      {"aten.abs.default", {}, {none}, "argument 'self' must not be None"},
      {"aten.pow.Tensor_Tensor", {{2}}, {none}, "argument 'exponent' must not be None"},
      {"aten.cat.default", {}, {ints({none})}, "argument 'tensors' must not hold None"},
      {"aten.stack.default", {}, {ints({})}, "non-empty"},
      {"aten.tril.default", {{}}, {}, "tril: input tensor must have at least 2"},
      {"aten.triu.default", {{4}}, {}, "triu: input tensor must have at least 2"},
      {"aten.roll.default", {{}}, {ints({1}), ints({0})}, "no dimensions"},
      {"aten.roll.default", {{4}}, {ints({1, 2}), ints({0})}, "must align"},
      {"aten.roll.default", {{4}}, {ints({}), ints({})}, "required"},
      {"aten.constant_pad_nd.default", {{4}}, {ints({INT64_MAX, INT64_MAX})}, "overflow"},
      {"aten.repeat.default", {{4}}, {ints({std::int64_t{1} << 62})}, "overflow"},
      {"aten.repeat.default", {{}}, {ints({std::int64_t{1} << 62})}, "overflow"},
      {"aten.expand.default", {{4}}, {ints({std::int64_t{1} << 62, 4})}, "overflow"},
      {"aten.new_empty_strided.default", {{4}}, {ints({4}), ints({std::int64_t{1} << 62})}, "out of range"},
      {"aten.new_empty_strided.default", {{4}}, {ints({2, 2}), ints({1})}, "dimensionality of strides (1)"},
      {"prims.copy_strided.default", {{4, 2}}, {ints({1})}, "dimensionality of strides (1)"},
      {"prims.split_dim.default", {{}}, {0, 1}, "no dimensions"},
      {"quantized_decomposed.quantize_per_tensor.default", {{2}}, {0.0, 2, 0, 9, DType::Int8}, "division by zero"},
      {"aten._weight_int8pack_mm.default", {{2, 4}, {3, 4}, {3}}, {}, "must be int8"},
      {"aten.sum_to_size.default", {{3, 2, 5}}, {ints({8, 1})}, "not expandable"},
      {"aten.pixel_shuffle.default", {{1, 4, 2, 2}}, {std::int64_t{1} << 32}, "overflow"},
      {"aten.diag_embed.default", {{4}}, {INT64_MAX}, "overflow"},
      {"aten.mvlgamma.default", {{4}}, {std::int64_t{1} << 40}, "at most"},
      {"aten.tril_indices.default", {}, {-1, 4}, "row must be non-negative"},
      {"aten.triu_indices.default", {}, {4, -1}, "col must be non-negative"},
  };
}

}  // namespace

class TestUnfitCalls : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void is_refused_data() {
    QTest::addColumn<int>("index");
    int i = 0;
    for (const Row& row : rows()) QTest::addRow("%s %d", row.op, i) << i, ++i;
  }
  void is_refused() {
    QFETCH(int, index);
    const Row row = rows()[static_cast<std::size_t>(index)];
    Graph graph("unfit");
    Args args;
    for (const Sizes& sizes : row.tensors)
      args.emplace_back(
          graph.placeholder("x", TensorMeta::contiguous(DType::Float32, SymList(sizes.begin(), sizes.end()))));
    args.insert(args.end(), row.others.begin(), row.others.end());
    const Result<Meta> meta = infer(Op::torch(row.op), args, {}, *graph.shapes);
    QVERIFY(!meta);
    QVERIFY2(meta.error().message.find(row.why) != std::string::npos, meta.error().message.c_str());
  }

  void python_functions_are_called_with_their_arguments() {
    struct Function {
      const char* name;
      std::size_t arity;
    };
    std::vector<Function> functions;
    for (const char* name :
         {"add", "sub", "mul", "floordiv", "mod", "truediv", "pow", "eq", "ne", "lt", "le", "gt", "ge", "and_", "or_"})
      functions.push_back({name, 2});
    for (const char* name : {"neg", "not_"}) functions.push_back({name, 1});
    for (Function& f : functions) f.name = Op::get(OpKind::Function, std::string("_operator.") + f.name)->name.c_str();
    for (const char* name : {"torch.sym_max", "torch.sym_min"}) functions.push_back({name, 2});
    for (const char* name : {"torch.sym_float", "torch.sym_int", "torch.sym_not", "torch._sym_sqrt", "math.ceil",
                             "math.floor", "math.trunc", "math_trunc", "torch.sym_sum"})
      functions.push_back({name, 1});
    Graph graph("calls");
    const Arg n = graph.placeholder("n", Meta(SymExpr::symbol("u0")));
    for (const Function& f : functions) {
      const Op* op = Op::get(OpKind::Function, f.name);
      for (std::size_t count = 0; count < 5; ++count) {
        if (count == f.arity) continue;
        for (const Arg& argument : {Arg(2), Arg(1.5), n}) {
          const auto meta = infer(op, Args(count, argument), {}, *graph.shapes);
          QVERIFY2(!meta && meta.error().fault == Fault::Input, f.name);
          QVERIFY2(meta.error().message.find(" takes ") != std::string::npos, meta.error().message.c_str());
        }
        const auto value = evaluate(op, std::vector<Value>(count, Value(std::int64_t{2})), {});
        QVERIFY2(!value && value.error().fault == Fault::Input, f.name);
      }
      const auto keyword = infer(op, Args(f.arity, Arg(2)), {{"alpha", Arg(2)}}, *graph.shapes);
      QVERIFY2(!keyword, f.name);
    }
  }

  /// A number that a symbol stands for has a kind, and no value.
  void symbols_are_no_numbers() {
    Graph graph("numbers");
    const Arg real = graph.placeholder("p", Meta(SymExpr::symbol("zuf0")));
    const Arg whole = graph.placeholder("n", Meta(SymExpr::symbol("u0")));
    const auto full = [&](const Arg& number) {
      return infer(Op::torch("aten.full.default"), {ints({3}), number}, {}, *graph.shapes)->tensor()->dtype;
    };
    QVERIFY(full(real) == DType::Float32);
    QVERIFY(full(whole) == DType::Int64);
    for (const Arg& number : {real, whole}) {
      const auto range = infer(Op::torch("aten.arange.start_step"), {0.5, number, 1.0}, {}, *graph.shapes);
      QVERIFY2(range, range ? "" : range.error().message.c_str());
      QVERIFY(!range->tensor()->sizes[0].is_int());
    }
  }

  /// The dtype of a vector norm may widen its input's, no more.
  void norms_that_narrow_are_refused() {
    const struct {
      DType self, asked;
      const char* why;  ///< null: it is fine
    } rows[] = {
        {DType::Float32, DType::Float64, nullptr},
        {DType::BFloat16, DType::Float32, nullptr},
        {DType::Complex64, DType::Complex128, nullptr},
        {DType::Float32, DType::BFloat16, "without narrowing"},
        {DType::BFloat16, DType::Float16, "without narrowing"},
        {DType::Complex64, DType::Float32, "complex for complex inputs"},
        {DType::Float32, DType::Complex64, "real for real inputs"},
        {DType::Float32, DType::Int64, "floating point or complex"},
        {DType::Int64, DType::Float32, "Expected a floating point or complex tensor"},
    };
    for (const auto& row : rows) {
      Graph graph("norm");
      const Arg x = graph.placeholder("x", TensorMeta::contiguous(row.self, {3}));
      const auto meta = infer(Op::torch("aten.linalg_vector_norm.default"), {x}, {{"dtype", row.asked}}, *graph.shapes);
      QCOMPARE(bool(meta), row.why == nullptr);
      if (row.why) QVERIFY2(meta.error().message.find(row.why) != std::string::npos, meta.error().message.c_str());
    }
  }

  void tensors_of_different_devices_are_refused() {
    const Device gpu{DeviceType::Cuda, 0};
    Graph graph("unfit");
    const auto tensor = [&](DType dtype, SymList sizes, Device device = {}) -> Arg {
      return graph.placeholder("x", TensorMeta::contiguous(dtype, std::move(sizes), device));
    };
    const Arg there = tensor(DType::Float32, {2, 2}, gpu), here = tensor(DType::Float32, {2, 2});
    const Arg number = tensor(DType::Float32, {}), index = tensor(DType::Int64, {2});
    const struct {
      const char* op;
      Args args;
      const char* argument;  ///< that is refused; null: none
    } calls[] = {
        {"aten.add.Tensor", {there, here}, "other"},
        {"aten.add.Tensor", {there, number}, nullptr},
        {"aten.add.Tensor", {number, there}, nullptr},
        {"aten.add.Tensor", {number, tensor(DType::Float32, {}, gpu)}, nullptr},
        {"aten.add_.Tensor", {there, here}, "other"},
        {"aten.mm.default", {there, here}, "mat2"},
        {"aten.addmm.default", {there, there, here}, "mat2"},
        {"aten.cat.default", {Arg::list({there, here})}, "tensors"},
        {"aten.linear.default", {there, here}, "mat2"},  // by its decomposition
        {"aten.gather.default", {there, 0, tensor(DType::Int64, {1, 1})}, "index"},
        {"aten.index.Tensor", {there, Arg::list({index})}, nullptr},
        {"aten.index_put.default", {there, Arg::list({index}), here}, "values"},
        {"aten.copy.default", {there, here}, nullptr},
        {"aten.copy_.default", {there, here}, nullptr},
        {"aten._foreach_add.List", {Arg::list({there, here}), Arg::list({there, here})}, nullptr},
        {"aten._foreach_add.List", {Arg::list({there, here}), Arg::list({there, there})}, "other"},
    };
    for (const auto& call : calls) {
      const Node* node = graph.create(Op::torch(call.op), call.args);
      const Result<Meta> meta = infer(*node);
      if (!call.argument) {
        QVERIFY2(meta, meta ? "" : meta.error().line().c_str());
        if (const TensorMeta* t = meta->tensor()) QCOMPARE(t->device, gpu);
        continue;
      }
      QVERIFY2(!meta, call.op);
      QVERIFY2(meta.error().message.find(std::string("Expected all tensors to be on the same device, but got ") +
                                         call.argument + " is on ") == 0,
               meta.error().message.c_str());
      QCOMPARE(meta.error().where.node, node->name());
    }
    QCOMPARE(infer(*graph.create(Op::torch("aten.mm.default"), {there, here})).error().message,
             std::string("Expected all tensors to be on the same device, but got mat2 is on cpu, different from other "
                         "tensors on cuda:0 (when checking argument in method aten.mm.default)"));
  }

  void a_number_asks_for_no_more_turns_than_the_limit_data() {
    QTest::addColumn<QString>("op");
    QTest::addColumn<double>("x");
    QTest::addColumn<double>("n");
    QTest::newRow("degree") << "aten.special_legendre_polynomial_p.default" << 0.5 << 0x1p32;
    QTest::newRow("a degree of 60 bits") << "aten.special_laguerre_polynomial_l.default" << 0.5 << 1e18;
    QTest::newRow("far below 9") << "aten.special_zeta.default" << 2.0 << -1e12 - 0.5;
  }
  void a_number_asks_for_no_more_turns_than_the_limit() {
    QFETCH(QString, op);
    QFETCH(double, x);
    QFETCH(double, n);
    std::optional<ConfigScope> patch(std::in_place, *patched_config({{"loop_limit", "100k"}}));
    auto number = [](double v) { return Value(*Tensor::scalar(DType::Float64, v)); };
    const Result<Value> refused = evaluate(Op::torch(op.toStdString()), {number(x), number(n)}, {});
    const Result<Value> done = evaluate(Op::torch(op.toStdString()), {number(x), number(9)}, {});
    patch.reset();
    QVERIFY2(done, done ? "" : done.error().message.c_str());
    QVERIFY(!refused);
    QVERIFY2(refused.error().message.find("--loop-limit") != std::string::npos, refused.error().message.c_str());
  }

  void what_cannot_be_joined_is_named() {
    Graph graph("unfit");
    std::vector<Arg> tensors;
    for (const SymList& sizes : {SymList{3}, SymList{2}, SymList{}})
      tensors.emplace_back(graph.placeholder("x", TensorMeta::contiguous(DType::Float32, sizes)));
    const Result<Meta> meta = infer(Op::torch("aten.cat.default"), {Arg::list(tensors)}, {}, *graph.shapes);
    QVERIFY(!meta);
    QVERIFY(meta.error().message == "zero-dimensional tensor (at position 2) cannot be concatenated");
  }

  void float8_is_converted_but_not_computed() {
    // 0.015625 is the smallest normal number of float8_e4m3fn, 0.001953125 its smallest subnormal one.
    const std::uint8_t bits[] = {0x38, 0xb8, 0x7e, 0x08, 0x01, 0x80};
    const double values[] = {1, -1, 448, 0.015625, 0.001953125, -0.0};
    Tensor t = *Tensor::empty(DType::UInt8, {6});
    std::copy(std::begin(bits), std::end(bits), t.as<std::uint8_t>());
    t.dtype = DType::Float8E4M3FN;
    for (std::int64_t i = 0; i < 6; ++i) QCOMPARE(t.item_as_double(i), values[i]);
    t.dtype = DType::Float8E5M2;
    QCOMPARE(t.item_as_double(0), 0.5);
    const Result<Tensor> number = Tensor::scalar(DType::Float8E5M2, 1);
    QVERIFY(!number);
    QVERIFY(number.error().message == "numbers in float8_e5m2");
    Graph graph("unfit");
    Node* x = graph.placeholder("x", TensorMeta::contiguous(DType::Float8E5M2, {6}));
    const Result<Value> negative = evaluate(Op::torch("aten.neg.default"), {Value(t)}, {}, {}, x);
    QVERIFY(!negative);
    QVERIFY2(negative.error().message == "aten.neg.default of float8_e5m2", negative.error().message.c_str());
    QVERIFY(evaluate(Op::torch("aten._assert_tensor_metadata.default"), {Value(t)}, {}, {}, x));
  }

  /// Packed numbers and bits are copied and viewed; what would compute them is refused by name.
  void opaque_dtypes_are_copied_and_viewed() {
    int count = 0;
    for (int i = 0; i <= int(DType::Bits16); ++i) {
      const auto dtype = static_cast<DType>(i);
      if (!is_opaque(dtype)) continue;
      ++count;
      Tensor t = *Tensor::empty(dtype, {4});
      for (std::size_t b = 0; b < t.storage->bytes(); ++b) t.storage->data()[b] = static_cast<std::byte>(b * 77 + 5);
      Graph graph("unfit");
      Node* x = graph.placeholder("x", TensorMeta::contiguous(dtype, {4}));
      const auto call = [&](const char* op, std::vector<Value> more) {
        more.insert(more.begin(), Value(t));
        return evaluate(Op::torch(op), std::move(more), {}, {}, x);
      };
      const auto bytes = [](const Tensor& v) {
        return std::string_view(reinterpret_cast<const char*>(v.data()),
                                static_cast<std::size_t>(v.numel()) * itemsize(v.dtype));
      };
      for (const char* op : {"aten.clone.default", "aten.lift_fresh_copy.default", "aten.detach.default"}) {
        const Result<Value> copy = call(op, {});
        QVERIFY2(copy, op);
        QCOMPARE(copy->get<Tensor>()->dtype, dtype);
        QVERIFY(bytes(*copy->get<Tensor>()) == bytes(t));
      }
      const Result<Value> view = call("aten.view.dtype", {Value(DType::UInt8)});
      QVERIFY(view);
      QVERIFY(bytes(*view->get<Tensor>()) == bytes(t));
      const std::string name(torch_name(dtype));
      const Result<Value> sum = call("aten.neg.default", {});
      QVERIFY(!sum);
      QCOMPARE(sum.error().message, "aten.neg.default of " + name);
      QCOMPARE(sum.error().fault, Fault::Unsupported);
      const Result<Value> cast =
          evaluate(Op::torch("aten._to_copy.default"), {Value(t)}, {{"dtype", Value(DType::Float32)}}, {}, x);
      QVERIFY(!cast);
      QCOMPARE(cast.error().message, "aten._to_copy.default of " + name + " to float32");
      QVERIFY(!t.to(DType::Float32) && t.to(dtype));
    }
    QCOMPARE(count, 20);
  }

  void a_gradient_has_one_total_weight() {
    Graph graph("unfit");
    auto tensor = [&](DType t, SymList sizes) {
      return graph.placeholder("x", TensorMeta::contiguous(t, std::move(sizes)));
    };
    const Result<Meta> meta = infer(Op::torch("aten.nll_loss_backward.default"),
                                    {tensor(DType::Float32, {}), tensor(DType::Float32, {3}), tensor(DType::Int64, {}),
                                     Arg(), 0, -1, tensor(DType::Float32, {3, 3})},
                                    {}, *graph.shapes);
    QVERIFY(!meta);
    QVERIFY2(meta.error().message.find("total_weight") != std::string::npos, meta.error().message.c_str());
  }

  void classes_have_a_weight_each_data() {
    QTest::addColumn<int>("dtype");
    QTest::addColumn<int>("rank");
    QTest::addColumn<QString>("why");
    QTest::newRow("a matrix") << static_cast<int>(DType::Float32) << 2 << "all 4 classes";
    QTest::newRow("another dtype") << static_cast<int>(DType::Float64) << 1 << "expected scalar type";
  }
  void classes_have_a_weight_each() {
    QFETCH(int, dtype);
    QFETCH(int, rank);
    QFETCH(QString, why);
    Graph graph("unfit");
    Node* self = graph.placeholder("self", TensorMeta::contiguous(DType::Float32, {1, 4}));
    Node* target = graph.placeholder("target", TensorMeta::contiguous(DType::Int64, {1}));
    Node* weight = graph.placeholder(
        "weight", TensorMeta::contiguous(static_cast<DType>(dtype), rank == 2 ? SymList{1, 4} : SymList{4}));
    const Result<Meta> meta =
        infer(Op::torch("aten.nll_loss_forward.default"), {self, target, weight, 1, -100}, {}, *graph.shapes);
    QVERIFY(!meta);
    QVERIFY2(meta.error().message.find(why.toStdString()) != std::string::npos, meta.error().message.c_str());
  }

  void an_image_is_sampled_by_a_grid_of_its_dtype() {
    Graph graph("unfit");
    Node* image = graph.placeholder("image", TensorMeta::contiguous(DType::Float64, {1, 1, 4, 4}));
    Node* grid = graph.placeholder("grid", TensorMeta::contiguous(DType::Float32, {1, 4, 4, 2}));
    const Result<Meta> meta =
        infer(Op::torch("aten.grid_sampler.default"), {image, grid, 0, 0, true}, {}, *graph.shapes);
    QVERIFY(!meta);
    QVERIFY2(meta.error().message.find("same dtype") != std::string::npos, meta.error().message.c_str());
  }

  void statistics_of_rows_have_no_more_dimensions_than_rows() {
    Graph graph("unfit");
    auto tensor = [&](SymList sizes) {
      return graph.placeholder("x", TensorMeta::contiguous(DType::Float32, std::move(sizes)));
    };
    Node *grad = tensor({3, 4}), *input = tensor({3, 4}), *mean = tensor({3}), *rstd = tensor({1, 1, 1, 1, 3, 1, 1});
    const Result<Meta> meta =
        infer(Op::torch("aten.native_layer_norm_backward.default"),
              {grad, input, ints({4}), mean, rstd, Arg(), Arg(), ints({true, true, true})}, {}, *graph.shapes);
    QVERIFY(!meta);
    QVERIFY2(meta.error().message.find("dimensions") != std::string::npos, meta.error().message.c_str());
  }

  void a_gated_gradient_has_the_dtype_of_what_was_gated() {
    Graph graph("unfit");
    Node* grad = graph.placeholder("grad", TensorMeta::contiguous(DType::Float32, {2}));
    Node* self = graph.placeholder("self", TensorMeta::contiguous(DType::Float16, {4}));
    const Result<Meta> meta = infer(Op::torch("aten.glu_backward.default"), {grad, self, 0}, {}, *graph.shapes);
    QVERIFY(!meta);
    QVERIFY2(meta.error().message.find("Found dtype") != std::string::npos, meta.error().message.c_str());
  }

  void vectors_of_a_cross_product_have_one_dtype() {
    for (const char* op : {"aten.linalg_cross.default", "aten.cross.default"}) {
      Graph graph("unfit");
      Node* a = graph.placeholder("a", TensorMeta::contiguous(DType::Int8, {2, 3}));
      Node* b = graph.placeholder("b", TensorMeta::contiguous(DType::BFloat16, {2, 3}));
      const Result<Meta> meta = infer(Op::torch(op), {a, b}, {}, *graph.shapes);
      QVERIFY(!meta);
      QVERIFY2(meta.error().message.find("expected scalar type") != std::string::npos, meta.error().message.c_str());
    }
  }

  void a_safe_softmax_is_of_floating_numbers() {
    const std::pair<DType, Arg> calls[] = {
        {DType::Int32, Arg()}, {DType::Bool, Arg()}, {DType::Complex64, Arg()}, {DType::Complex64, DType::Float32}};
    for (const auto& [dtype, result] : calls) {
      Graph graph("unfit");
      Node* x = graph.placeholder("x", TensorMeta::contiguous(dtype, {2, 3}));
      const Result<Meta> meta = infer(Op::torch("aten._safe_softmax.default"), {x, 1, result}, {}, *graph.shapes);
      QVERIFY(!meta);
    }
  }

  void equations_have_one_dtype_data() {
    QTest::addColumn<QString>("op");
    for (const char* op : {"aten._linalg_solve_ex.default", "aten.linalg_lstsq.default", "aten.cholesky_solve.default",
                           "aten.triangular_solve.default"})
      QTest::newRow(op) << op;
  }
  void equations_have_one_dtype() {
    QFETCH(QString, op);
    Graph graph("unfit");
    Node* a = graph.placeholder("a", TensorMeta::contiguous(DType::Complex64, {2, 2}));
    Node* b = graph.placeholder("b", TensorMeta::contiguous(DType::Float32, {2, 2}));
    const Result<Meta> meta = infer(Op::torch(op.toStdString()), {a, b}, {}, *graph.shapes);
    QVERIFY(!meta);
    QVERIFY2(meta.error().message.find("same dtype") != std::string::npos, meta.error().message.c_str());
  }
};

QTEST_APPLESS_MAIN(TestUnfitCalls)
#include "test_unfit_calls.moc"
