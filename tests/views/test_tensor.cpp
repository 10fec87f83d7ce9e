// What the views show of two tensors and of two reports: models without a window.
#include <QTest>
#include <cmath>

#include "views/history/history_view.h"
#include "views/tensor/tensor_image.h"

using namespace partita;
using namespace partita::views;

namespace {

Tensor ramp_tensor(DType dtype, Sizes sizes) {
  Tensor t = *Tensor::empty(DType::Float32, std::move(sizes));
  for (std::int64_t i = 0; i < t.numel(); ++i) t.as<float>()[i] = static_cast<float>(i) - 10;
  return dtype == DType::Float32 ? t : *t.to(dtype);
}

TensorPair pair_of(const Tensor& a, const Tensor& b, Tolerance tolerance = {}) {
  auto pair = make_tensor_pair("x", Value(a), Value(b), tolerance, {});
  if (!pair) qFatal("%s", pair.error().line().c_str());
  return *std::move(pair);
}

Grid grid_of(const TensorPair& pair, const Slice& slice, int rows, int columns, const Progress& progress) {
  const TensorPair* one = &pair;
  return make_grids(std::span(&one, 1), slice, rows, columns, progress)->front();
}

TensorColours colours_of_pair(const TensorPair& pair) {
  const TensorPair* one = &pair;
  return TensorColours::of(std::span(&one, 1));
}

std::int64_t sum(const Histogram& h) {
  std::int64_t n = 0;
  for (auto c : h.counts) n += c;
  return n;
}

}  // namespace

class TestTensor : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_pair_knows_where_it_first_and_most_differs() {
    Tensor a = ramp_tensor(DType::Float32, {2, 3, 4, 5}), b = *a.clone();
    b.as<float>()[17] += 0.5F;
    b.as<float>()[90] -= 8;
    TensorPair pair = pair_of(a, b);
    QCOMPARE(pair.type, QString("float32[2, 3, 4, 5]"));
    QCOMPARE(pair.first_wrong, 17);
    QCOMPARE(pair.worst, 90);
    QCOMPARE(pair.equal, 118);
    QCOMPARE(index_text(pair.sizes(), 17), QString("[0, 0, 3, 2]"));
    QCOMPARE(sum(pair.expected_values), 120);
    QCOMPARE(sum(pair.found_values), 120);
    QCOMPARE(sum(pair.errors), 2);
    QVERIFY(pair.errors.logarithmic);
    QCOMPARE(pair.errors.low, 0.5);
    QCOMPARE(pair.errors.high, 8.0);
    QVERIFY(pair.cosine > 0.99 && pair.cosine < 1);
    QVERIFY(pair_text(pair).startsWith("2 of 120 over tolerance, largest error 8.0e0"));
  }

  void slices_are_placed_as_asked() {
    Tensor a = ramp_tensor(DType::Float32, {2, 3, 4, 5}), b = *a.clone();
    b.as<float>()[90] -= 8;
    TensorPair pair = pair_of(a, b);
    Slice slice = slice_through(pair, 90);
    QCOMPARE(slice.rows, 2);
    QCOMPARE(slice.columns, 3);
    QCOMPARE(slice.at, (Sizes{1, 1, 2, 0}));
    Grid grid = grid_of(pair, slice, 100, 100, {});
    QCOMPARE(grid.rows, 4);
    QCOMPARE(grid.columns, 5);
    QCOMPARE(grid.at(0, 0)->position, 80);
    QCOMPARE(grid.at(2, 0)->position, 90);
    QCOMPARE(grid.at(2, 0)->expected, 80.0);
    QCOMPARE(grid.at(2, 0)->found, 72.0);
    QCOMPARE(grid.cell_of(90), 10);
    QCOMPARE(grid.cell_of(17), -1);
    QVERIFY(!grid.at(4, 0) && !grid.at(0, -1));
    QVERIFY(cell_text(pair, grid, *grid.at(2, 0)).startsWith("[1, 1, 2, 0]"));
    QVERIFY(cell_text(pair, grid, *grid.at(2, 0)).endsWith("over tolerance"));
    // Shows other dimensions as rows and columns.
    Slice turned = slice_through(pair, 90, {0, 2, Sizes(4)});
    Grid other = grid_of(pair, turned, 100, 100, {});
    QCOMPARE(other.rows, 2);
    QCOMPARE(other.columns, 4);
    QCOMPARE(other.at(1, 2)->position, 90);
    QCOMPARE(other.at(0, 2)->position, 30);
  }

  void shapes_data() {
    QTest::addColumn<QList<int>>("sizes");
    QTest::addColumn<int>("rows");
    QTest::addColumn<int>("columns");
    QTest::newRow("scalar") << QList<int>{} << 1 << 1;
    QTest::newRow("short vector") << QList<int>{7} << 1 << 7;
    QTest::newRow("vector is wrapped") << QList<int>{1000} << 16 << 64;
    QTest::newRow("matrix") << QList<int>{3, 2} << 3 << 2;
    QTest::newRow("large") << QList<int>{500, 1000} << 100 << 100;
    QTest::newRow("empty") << QList<int>{0, 4} << 0 << 0;
  }
  void shapes() {
    QFETCH(QList<int>, sizes);
    QFETCH(int, rows);
    QFETCH(int, columns);
    Tensor a = ramp_tensor(DType::Float32, Sizes(sizes.begin(), sizes.end()));
    TensorPair pair = pair_of(a, a);
    QCOMPARE(pair.first_wrong, -1);
    if (a.numel() == 0) {
      QCOMPARE(grid_of(pair, {}, 100, 100, {}).rows, 0);
      return;
    }
    Grid grid = grid_of(pair, slice_through(pair, 0), 100, 100, {});
    QCOMPARE(grid.rows, rows);
    QCOMPARE(grid.columns, columns);
    std::int64_t elements = 0;
    for (const GridCell& cell : grid.cells) elements += cell.position >= 0;
    if (grid.rows_per_cell * grid.columns_per_cell == 1) QCOMPARE(elements, a.numel());
    QCOMPARE(tensor_image(grid, Layer::Expected, colours_of_pair(pair), Theme::light()).size(), QSize(columns, rows));
  }

  void a_cell_of_many_elements_shows_the_worst() {
    Tensor a = ramp_tensor(DType::Float32, {500, 1000}), b = *a.clone();
    b.as<float>()[123'456] += 99;
    TensorPair pair = pair_of(a, b);
    Grid grid = grid_of(pair, slice_through(pair, 123'456), 100, 100, {});
    QCOMPARE(grid.rows_per_cell, 5);
    QCOMPARE(grid.columns_per_cell, 10);
    QCOMPARE(grid.cell_of(123'456), 123 / 5 * 100 + 456 / 10);
    QVERIFY(cell_text(pair, grid, grid.cells[grid.cell_of(123'456)]).endsWith("worst of 50 in this cell"));
  }

  void dtypes_data() {
    QTest::addColumn<int>("dtype");
    for (DType t :
         {DType::Bool, DType::UInt8, DType::Int64, DType::Float16, DType::BFloat16, DType::Float64, DType::Complex64})
      QTest::newRow(std::string(torch_name(t)).c_str()) << static_cast<int>(t);
  }
  void dtypes() {
    QFETCH(int, dtype);
    Tensor a = ramp_tensor(static_cast<DType>(dtype), {3, 4});
    TensorPair pair = pair_of(a, a);
    QCOMPARE(pair.equal, is_complex(a.dtype) ? 24 : 12);  // a real and an imaginary part
    QCOMPARE(pair.errors.counts.size(), std::size_t{0});
  }

  void nan_has_a_colour_of_its_own() {
    Tensor a = ramp_tensor(DType::Float32, {1, 4}), b = *a.clone();
    a.as<float>()[0] = b.as<float>()[0] = NAN;
    b.as<float>()[1] = NAN;
    b.as<float>()[2] = INFINITY;
    TensorPair pair = pair_of(a, b);
    QCOMPARE(pair.first_wrong, 1);
    QVERIFY(std::isfinite(pair.low) && std::isfinite(pair.high) && std::isfinite(pair.cosine));
    Grid grid = grid_of(pair, slice_through(pair, 0), 10, 10, {});
    TensorColours colours = colours_of_pair(pair);
    const Theme& theme = Theme::light();
    QCOMPARE(colours.colour(grid.cells[0], Layer::Error, theme), theme.paper);  // NaN on both sides
    QCOMPARE(colours.colour(grid.cells[0], Layer::Found, theme), nan_colour(theme));
    QCOMPARE(colours.colour(grid.cells[1], Layer::Error, theme), nan_colour(theme));
    QCOMPARE(colours.colour(grid.cells[2], Layer::Error, theme), inf_colour(theme));
    QVERIFY(pair_text(pair).contains("NaN 1 / 2"));
  }

  void columns_show_the_same_elements() {
    Tensor a = ramp_tensor(DType::Float32, {4, 4}), b = *a.clone(), c = *a.clone();
    b.as<float>()[1] += 1;
    c.as<float>()[6] += 2;
    const TensorPair first = pair_of(a, b), second = pair_of(a, c);
    const TensorPair* both[] = {&first, &second};
    const std::vector<Grid> grids = *make_grids(both, slice_through(first, 0), 2, 2, {});
    QCOMPARE(grids.size(), std::size_t{2});
    for (const Grid& grid : grids) {  // four elements a cell: the worst of either column
      QCOMPARE(grid.cells[0].position, 1);
      QCOMPARE(grid.cells[1].position, 6);
    }
    QCOMPARE(grids[0].cells[0].found, -8.0);
    QCOMPARE(grids[1].cells[0].found, -9.0);
    QCOMPARE(grids[1].cells[1].found, -2.0);
    const GridCell cells[] = {grids[0].cells[1], grids[1].cells[1]};
    QCOMPARE(cells_text(both, cells), QString("[1, 2]    -4    -4    -2 (over tolerance)"));
    const TensorColours colours = TensorColours::of(both);
    QCOMPARE(colours.errors.low, 1.0);
    QCOMPARE(colours.errors.high, 2.0);
  }

  void what_agrees_does_not_alarm() {
    for (const Theme* theme : {&Theme::light(), &Theme::night()}) {
      const auto colours_of = [&](float expected, float found, Layer layer) {
        Tensor a = *Tensor::zeros(DType::Float32, {1}), b = *a.clone();
        a.as<float>()[0] = expected;
        b.as<float>()[0] = found;
        const TensorPair pair = pair_of(a, b);
        return colours_of_pair(pair).colour(grid_of(pair, slice_through(pair, 0), 1, 1, {}).cells[0], layer, *theme);
      };
      // A scalar that agrees up to rounding looks alike on both sides, one that does not does not.
      QCOMPARE(colours_of(2.0F, 2.000001F, Layer::Expected), colours_of(2.0F, 2.000001F, Layer::Found));
      QCOMPARE(colours_of(-1e-7F, 1e-7F, Layer::Expected), colours_of(-1e-7F, 1e-7F, Layer::Found));
      QVERIFY(colours_of(2.0F, 3.0F, Layer::Expected) != colours_of(2.0F, 3.0F, Layer::Found));
      // The strong end of the errors' ramp is for those beyond the tolerance.
      QCOMPARE(colours_of(2.0F, 3.0F, Layer::Error), sequential(1, *theme));
      QCOMPARE(colours_of(2.0F, 2.000001F, Layer::Error), sequential(0.3, *theme));
    }
  }

  void values_of_other_sizes_make_no_pair() {
    Tensor a = ramp_tensor(DType::Float32, {2, 3}), b = ramp_tensor(DType::Float32, {3, 2});
    auto pair = make_tensor_pair("x", Value(a), Value(b), {}, {});
    QVERIFY(!pair);
    QVERIFY(pair.error().line().find("[2, 3]") != std::string::npos);
    QVERIFY(!make_tensor_pair("x", Value(a), Value(), {}, {}));
    Progress stopped;
    stopped.stop = true;
    QCOMPARE(make_tensor_pair("x", Value(a), Value(a), {}, stopped).error().fault, Fault::Cancelled);
  }

  void two_reports_side_by_side() {
    auto difference = [](const char* name, double error, bool ok) {
      Difference d;
      d.name = name;
      d.max_abs = error;
      d.values_agree = ok;
      return d;
    };
    Report a, b;
    a.rows = {difference("same", 1e-7, true), difference("fixed", 1, false),   difference("broken", 1e-7, true),
              difference("gone", 1e-7, true), difference("worse", 1e-7, true), difference("better", 4e-6, true)};
    b.rows = {difference("same", 1e-7, true),  difference("fixed", 1e-7, true),  difference("broken", 2, false),
              difference("worse", 3e-6, true), difference("better", 1e-6, true), difference("new", 0, true)};
    QStringList names, changes;
    for (const Row& row : side_by_side(a, &b)) names << row.node, changes << row.cells.back().text;
    QCOMPARE(names, (QStringList{"broken", "fixed", "worse", "better", "gone", "new", "same"}));
    QCOMPARE(changes,
             (QStringList{"broken", "fixed", "30 times larger", "4 times smaller", "only in A", "only in B", "same"}));
    QCOMPARE(side_by_side(a, nullptr).front().node, QString("fixed"));  // the wrong node comes first
    PastWork slow{PastWork::Kind::Run, 1, 5, "m.pt2", "g", "interp", "ok", true, 30};
    PastWork fast{PastWork::Kind::Run, 2, 9, "m.pt2", "g", "cpu", "ok", true, 10};
    std::vector<Row> runs = side_by_side(slow, &fast);
    QCOMPARE(runs[0].cells.back().text, QString("3 times faster"));
    QCOMPARE(runs[2].cells.back().text, QString("other"));
    QCOMPARE(runs[4].cells.back().text, QString("same"));
  }

  void earlier_runs_are_listed_newest_first() {
    std::vector<StoredCheck> checks{{7, 100, {"a/m.pt2", "g", "compare", false, {}}}};
    std::vector<StoredRun> runs{{3, 200, {"a/m.pt2", "g", "cpu", "", 1.5, "ok"}},
                                {2, 50, {"b", "g", "cpu", "", 2, "x"}}};
    std::vector<PastWork> past = past_work(checks, runs, {});
    QCOMPARE(past.size(), std::size_t{3});
    QCOMPARE(past[1].id, 7);
    QCOMPARE(newest_pair(past), std::vector<int>{1});
    std::vector<PastWork> checks_only = past_work({{9, 300, {"m", "g", "compare", true, {}}},
                                                   {8, 300, {"m", "g", "compare", true, {}}},  // the other half
                                                   {7, 200, {"m", "h", "compare", true, {}}},  // another graph
                                                   {6, 200, {"m", "g", "passes", true, {}}},   // another kind
                                                   {5, 100, {"m", "g", "compare", true, {}}}},
                                                  {}, {});
    QCOMPARE(newest_pair(checks_only), (std::vector<int>{0, 4}));
    QVERIFY(newest_pair({}).empty());
    std::vector<Row> rows = past_rows(past);
    QCOMPARE(rows[0].cells[6].text, QString("1.50 ms"));
    QCOMPARE(rows[1].cells[2].text, QString("differs"));
    QCOMPARE(rows[2].cells[2].tone, Tone::Bad);
    rows =
        past_rows(past_work({}, {}, {{5, 10, "forward", "fxgraph_cache", 0}, {6, 11, "forward", "fxgraph_cache", 2}}));
    QCOMPARE(rows[0].cells[1].text, QString("cache"));
    QCOMPARE(rows[0].cells[2].text, QString("found 2 times"));
    QCOMPARE(rows[0].cells[3].text, QString());  // of no file
    QCOMPARE(rows[1].cells[2].text, QString("not found again"));
  }

  void lines_of_two_keys_stand_beside_each_other() {
    const EntryDifference found{
        "compiled/1", "compiled/2", {{"graph", {"- a", "- b", "+ c", "... and 1 more"}}, {"options", {"+ x"}}}};
    QStringList rows;
    for (const Row& row : side_by_side(found)) {
      QStringList cells;
      for (const Cell& cell : row.cells) cells << cell.text;
      rows << cells.join('|');
    }
    QCOMPARE(rows, (QStringList{"graph|a||c||", "graph|b||||", "graph|||||... and 1 more", "options|||x||"}));
  }
};

QTEST_GUILESS_MAIN(TestTensor)
#include "test_tensor.moc"
