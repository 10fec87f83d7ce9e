// Factorisations, Fourier transforms, and reductions into slices, segments and bins: expected values, sizes and strides
// are PyTorch 2.13's.
#include <QTest>
#include <cmath>

#include "core/ops/record/record.h"

using namespace partita;

namespace {

Tensor doubles(Sizes sizes, const std::vector<double>& values) {
  Tensor t = *Tensor::empty(DType::Float64, std::move(sizes));
  std::copy(values.begin(), values.end(), t.as<double>());
  return t;
}
Tensor complexes(Sizes sizes, const std::vector<double>& values) {
  return *doubles(std::move(sizes), values).to(DType::Complex128);
}
Tensor in_columns(const Tensor& matrix) {
  Tensor t = *Tensor::empty_strided(matrix.dtype, matrix.sizes, {1, matrix.sizes[0]});
  t.copy_from(matrix);
  return t;
}
Tensor indices(const std::vector<double>& values) {
  return *doubles({static_cast<std::int64_t>(values.size())}, values).to(DType::Int64);
}

const Tensor square = doubles({3, 3}, {4, 1, 2, 1, 3, 0, 2, 0, 5}), tall = doubles({3, 2}, {1, 2, 3, 4, 5, 6});
const Tensor skew = doubles({3, 3}, {4, 1, 0, 1, 3, 2, 2, 5, 5});
const Tensor turn = doubles({2, 2}, {0, 1, -1, 0}), right = doubles({3, 1}, {1, 2, 4});
const Tensor reflectors = doubles({3, 2}, {-5.916079783099615, -7.437357441610946, 0.4337717455676132,
                                           0.828078671210825, 0.7229529092793553, 0.8926238280228976});
const Tensor scales = doubles({2}, {1.1690308509457032, 1.1131040011646904});

struct Expected {
  Sizes sizes, strides;
  std::vector<double> values;  ///< of complex results, the real parts
};
struct Row {
  const char* op;
  std::vector<Value> args;
  std::vector<std::pair<std::string, Value>> kwargs;
  std::vector<Expected> results;  ///< the first results; without values, only sizes and strides are compared
};

const std::vector<double> factors = {4, 1, 2, 0.25, 2.75, -0.5, 0.5, -0.18181818181818182, 3.909090909090909};

const std::vector<double> factors_of_skew = {4, 1, 0, 0.5, 4.5, 5, 0.25, 0.6111111111111112, -1.0555555555555558};
/// Of a determinant's row-major matrix.
const std::vector<double> factors_of_transpose = {4, 1, 2, 0.25, 2.75, 4.5, 0, 0.7272727272727273, 1.727272727272727};

const Row rows[] = {
    {"aten.linalg_lu_factor_ex.default",
     {square},
     {},
     {{{3, 3}, {1, 3}, factors}, {{3}, {1}, {1, 2, 3}}, {{}, {}, {0}}}},
    {"aten._linalg_det.default", {square}, {}, {{{}, {}, {43}}, {{3, 3}, {1, 3}, factors}}},
    {"aten._linalg_slogdet.default", {square}, {}, {{{}, {}, {1}}, {{}, {}, {3.761200115693563}}}},
    {"aten._linalg_det.default", {skew}, {}, {{{}, {}, {19}}, {{3, 3}, {1, 3}, factors_of_transpose}}},
    {"aten._linalg_slogdet.default",
     {skew},
     {},
     {{{}, {}, {1}}, {{}, {}, {2.9444389791664403}}, {{3, 3}, {1, 3}, factors_of_transpose}}},
    {"aten._linalg_det.default", {in_columns(skew)}, {}, {{{}, {}, {19}}, {{3, 3}, {1, 3}, factors_of_skew}}},
    {"aten.linalg_inv_ex.default",
     {square},
     {},
     {{{3, 3},
       {1, 3},
       {0.3488372093023256, -0.11627906976744187, -0.13953488372093023, -0.11627906976744187, 0.372093023255814,
        0.04651162790697675, -0.13953488372093023, 0.04651162790697675, 0.2558139534883721}}}},
    {"aten._linalg_solve_ex.default",
     {square, tall},
     {},
     {{{3, 2},
       {1, 3},
       {-0.6976744186046513, -0.6046511627906979, 1.232558139534884, 1.5348837209302328, 1.2790697674418605,
        1.4418604651162792}}}},
    {"aten.linalg_cholesky_ex.default",
     {square},
     {},
     {{{3, 3}, {1, 3}, {2, 0, 0, 0.5, 1.6583123951777, 0, 1, -0.30151134457776363, 1.9771421064483223}}}},
    {"aten.linalg_pinv.atol_rtol_tensor",
     {tall},
     {},
     {{{2, 3}, {3, 1}, {-4. / 3, -1. / 3, 2. / 3, 13. / 12, 1. / 3, -5. / 12}}}},
    {"aten._linalg_eigh.default",
     {square},
     {},
     {{{3}, {1}, {1.854897308799577, 3.4760236029181337, 6.669079088282288}}, {{3, 3}, {1, 3}, {}}}},
    {"aten.linalg_eig.default", {turn}, {}, {{{2}, {1}, {0, 0}}, {{2, 2}, {1, 2}, {}}}},
    {"aten._linalg_svd.default",
     {tall},
     {},
     {{{3, 2}, {1, 3}, {}}, {{2}, {1}, {9.525518091565107, 0.5143005806586441}}, {{2, 2}, {1, 2}, {}}}},
    {"aten._linalg_svd.default", {tall, true}, {}, {{{3, 3}, {1, 3}, {}}, {{2}, {1}, {}}, {{2, 2}, {1, 2}, {}}}},
    {"aten._linalg_svd.default", {tall, false, false}, {}, {{{0}, {1}, {}}, {{2}, {1}, {}}, {{0}, {1}, {}}}},
    {"aten.linalg_qr.default",
     {tall},
     {},
     {{{3, 2},
       {1, 3},
       {-0.16903085094570325, 0.8970852271450607, -0.50709255283711, 0.27602622373694136, -0.8451542547285166,
        -0.34503277967117696}},
      {{2, 2}, {1, 2}, {-5.916079783099615, -7.437357441610946, 0, 0.828078671210825}}}},
    {"aten.linalg_qr.default", {tall, std::string("complete")}, {}, {{{3, 3}, {1, 3}, {}}, {{3, 2}, {1, 3}, {}}}},
    {"aten.linalg_qr.default", {tall, std::string("r")}, {}, {{{0}, {1}, {}}, {{2, 2}, {1, 2}, {}}}},
    {"aten.geqrf.default",
     {tall},
     {},
     {{{3, 2},
       {1, 3},
       {-5.916079783099615, -7.437357441610946, 0.4337717455676132, 0.828078671210825, 0.7229529092793553,
        0.8926238280228976}},
      {{2}, {1}, {1.1690308509457032, 1.1131040011646904}}}},
    {"aten.linalg_householder_product.default",
     {reflectors, scales},
     {},
     {{{3, 2},
       {1, 3},
       {-0.16903085094570325, 0.8970852271450607, -0.50709255283711, 0.27602622373694136, -0.8451542547285166,
        -0.34503277967117696}}}},
    {"aten.ormqr.default",
     {reflectors, scales, tall},
     {},
     {{{3, 2},
       {1, 3},
       {4.563466282808793, 5.699768949472011, -3.7614967862649165, -4.8090596962928105, 0.16098885857726852,
        -0.620949885358562}}}},
    {"aten.linalg_matrix_exp.default",
     {turn},
     {},
     {{{2, 2}, {2, 1}, {0.54030230586814, 0.8414709848078963, -0.8414709848078963, 0.54030230586814}}}},
    {"aten.linalg_lstsq.default",
     {tall, right},
     {{"driver", std::string("gelsd")}},
     {{{2, 1}, {1, 3}, {2. / 3, 1. / 12}},
      {{1}, {1}, {1. / 6}},
      {{}, {}, {2}},
      {{2}, {1}, {9.525518091565106, 0.5143005806586444}}}},
    {"aten._fft_r2c.default",
     {doubles({4}, {1, 2, 3, 4}), ValueList{std::int64_t{0}}, std::int64_t{0}, true},
     {},
     {{{3}, {1}, {10, -2, -2}}}},
    {"aten._fft_c2c.default",
     {complexes({3}, {1, 2, 3}), ValueList{std::int64_t{0}}, std::int64_t{2}, false},
     {},
     {{{3}, {1}, {2, -0.5, -0.5}}}},
    {"aten._fft_c2r.default",
     {complexes({3}, {1, 2, 3}), ValueList{std::int64_t{0}}, std::int64_t{0}, std::int64_t{4}},
     {},
     {{{4}, {1}, {8, -2, 0, -2}}}},
    {"aten.index_reduce.default",
     {doubles({3}, {1, 2, 3}), std::int64_t{0}, indices({0, 0, 2}), doubles({3}, {4, 5, 6}), std::string("mean")},
     {},
     {{{3}, {1}, {10. / 3, 2, 4.5}}}},
    {"aten.segment_reduce.default",
     {doubles({4}, {1, 2, 3, 4}), std::string("mean")},
     {{"lengths", indices({1, 0, 3})}},
     {{{3}, {1}, {1, NAN, 3}}}},
    {"aten.histogram.bin_ct",
     {doubles({4}, {1, 2, 3, 4}), std::int64_t{3}},
     {},
     {{{3}, {1}, {1, 1, 2}}, {{4}, {1}, {1, 2, 3, 4}}}},
    {"aten._unique2.default",
     {doubles({5}, {3, 1, 2, 3, 1}), true, true, true},
     {},
     {{{3}, {1}, {1, 2, 3}}, {{5}, {1}, {2, 0, 1, 2, 0}}, {{3}, {1}, {2, 1, 2}}}},
    {"aten.renorm.default",
     {tall, 2.0, std::int64_t{0}, 3.0},
     {},
     {{{3, 2}, {2, 1}, {1, 2, 1.7999999640000006, 2.399999952000001, 1.9205531744032762, 2.304663809283931}}}},
    // Matrices that are broadcast to three right sides each: the second has rank 1.
    {"aten.linalg_lstsq.default",
     {doubles({2, 1, 2, 2}, {3, 0, 0, 2, 1, 0, 0, 0}), doubles({2, 3, 2, 1}, std::vector<double>(12, 1))},
     {{"driver", std::string("gelsd")}},
     {{{2, 3, 2, 1}, {6, 2, 1, 2}, {1. / 3, .5, 1. / 3, .5, 1. / 3, .5, 1, 0, 1, 0, 1, 0}},
      {{0}, {1}},
      {{2, 1}, {1, 1}, {2, 1}},
      {{2, 1, 2}, {2, 2, 1}, {3, 2, 1, 0}}}},
    {"aten.searchsorted.Tensor",
     {doubles({4}, {1, 2, 3, NAN}), doubles({3}, {1.5, 3.5, NAN})},
     {},
     {{{3}, {1}, {1, 4, 4}}}},
    {"aten.bincount.default", {indices({1, 1, 3})}, {}, {{{4}, {1}, {0, 2, 0, 1}}}},
    {"aten.repeat_interleave.Tensor", {indices({1, 0, 3})}, {}, {{{4}, {1}, {0, 2, 2, 2}}}},
    {"aten.narrow.Tensor",
     {tall, std::int64_t{0}, *indices({-2}).view_as({}, {}, 0).clone(), std::int64_t{2}},
     {},
     {{{2, 2}, {2, 1}, {3, 4, 5, 6}}}},
    {"aten.tensor_split.tensor_indices_or_sections",
     {tall, indices({1, 2})},
     {},
     {{{1, 2}, {2, 1}, {1, 2}}, {{1, 2}, {2, 1}, {3, 4}}, {{1, 2}, {2, 1}, {5, 6}}}},
    {"aten.tensor_split.tensor_indices_or_sections",
     {tall, *indices({2}).view_as({}, {}, 0).clone()},
     {},
     {{{2, 2}, {2, 1}, {1, 2, 3, 4}}, {{1, 2}, {2, 1}, {5, 6}}}},
    {"aten.logaddexp.default",
     {complexes({2}, {0, 3}), complexes({2}, {1, -2})},
     {},
     {{{2}, {1}, {1.3132616875182228, 3.0067153484891183}}}},
    {"aten.logcumsumexp.default",
     {complexes({3}, {0, 1, 3}), std::int64_t{0}},
     {},
     {{{3}, {1}, {0.0, 1.3132616875182228, 3.1698460195562856}}}},
};

}  // namespace

class MatrixValues : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void evaluates_data() {
    QTest::addColumn<int>("index");
    for (std::size_t i = 0; i < std::size(rows); ++i) QTest::addRow("%s %zu", rows[i].op, i) << static_cast<int>(i);
  }

  void evaluates() {
    QFETCH(int, index);
    const Row& row = rows[index];
    Result<Value> result = evaluate(Op::torch(row.op), row.args, row.kwargs);
    QVERIFY2(bool(result), result ? "" : result.error().line().c_str());
    ValueList single = {*result};
    const ValueList& found = result->get<ValueList>() ? *result->get<ValueList>() : single;
    for (std::size_t r = 0; r < row.results.size(); ++r) {
      const Tensor& t = *found[r].get<Tensor>();
      const Expected& expected = row.results[r];
      QCOMPARE(t.sizes, expected.sizes);
      QCOMPARE(t.strides, expected.strides);
      Tensor real = *t.to(DType::Float64);
      for (std::size_t i = 0; i < expected.values.size(); ++i) {
        double value = real.item_as_double(static_cast<std::int64_t>(i)), want = expected.values[i];
        bool same = std::isnan(want) ? std::isnan(value) : std::abs(value - want) <= 1e-12 * (1 + std::abs(want));
        QVERIFY2(same,
                 qPrintable(QString("result %1, element %2: %3, expected %4").arg(r).arg(i).arg(value).arg(want)));
      }
    }
  }

  void singularVectorsMakeTheMatrix() {
    Result<Value> result = evaluate(Op::torch("aten._linalg_svd.default"), {tall}, {});
    QVERIFY(bool(result));
    const ValueList& usv = *result->get<ValueList>();
    auto at = [&](std::size_t r, std::int64_t i) { return usv[r].get<Tensor>()->contiguous()->item_as_double(i); };
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t j = 0; j < 2; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < 2; ++k) sum += at(0, i * 2 + k) * at(1, k) * at(2, k * 2 + j);
        QVERIFY(std::abs(sum - tall.item_as_double(i * 2 + j)) < 1e-12);
      }
  }
};

QTEST_APPLESS_MAIN(MatrixValues)
#include "test_matrix_values.moc"
