// Ranks meet: what matches is carried out in whatever order it is started, what does not ends the job and is named.
#include <QtTest>
#include <atomic>

#include <fmt/format.h>

#include "tests/ranks/job.h"

using namespace partita;
using namespace partita::testing;

namespace {

using Work = std::function<void(int rank, Communicator& others)>;

TogetherRun run(const Job& job, const Work& work, int computing = 2) {
  TogetherOptions options;
  options.computing = computing;
  options.origin = [](int, const std::string& node) { return "model.py:" + node.substr(node.find('_') + 1); };
  auto done = run_together(
      job,
      [&](int rank, Communicator& others, const Progress&) -> Status {
        work(rank, others);
        return {};
      },
      options);
  if (!done) throw std::runtime_error(done.error().line());
  return *std::move(done);
}

const Tensor ones = f32({2, 3}, {1, 1, 1, 1, 1, 1});

std::string all_lines(const Diagnostic& d) {
  std::string text = d.line();
  for (const std::string& note : d.notes) text += "\n" + note;
  return text;
}

int count(const TogetherRun& run, RankEnd::State state) {
  return static_cast<int>(std::ranges::count(run.ends, state, &RankEnd::state));
}

}  // namespace

class TestMeeting : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void sums_of_many_ranks();
  void starts_in_other_orders();
  void groups_side_by_side();
  void messages_between_two();
  void mismatch_data();
  void mismatch();
  void crossed_groups();
  void nobody_sends();
  void a_rank_that_fails();
  void stops_on_request();
  void bad_jobs_data();
  void bad_jobs();
  void memory_used_again();
  void fills_what_nobody_waited_for();
};

void TestMeeting::sums_of_many_ranks() {
  std::atomic<int> right = 0;
  const TogetherRun done = run({.ranks = 64}, [&](int rank, Communicator& others) {
    for (int i = 0; i < 20; ++i) {
      const Tensor sum = call(others, all_reduce(f32({2}, {double(rank), double(i)}), "all_reduce_1"));
      if (elements(Value(sum)) == std::vector<double>{64 * 63 / 2, 64.0 * i}) ++right;
    }
  });
  QVERIFY(!done.failure);
  QCOMPARE(right.load(), 64 * 20);
}

// Rank 0 starts a then b, rank 1 b then a: of different groups, so both come to their ends.
void TestMeeting::starts_in_other_orders() {
  const Job job{2, {{"a", {0, 1}}, {"b", {1, 0}}}};
  std::vector<std::vector<double>> found(2);
  const TogetherRun done = run(job, [&](int rank, Communicator& others) {
    const Started a = all_reduce(f32({1}, {rank + 1.0}), "a_1", "sum", "a");
    const Started b = all_gather(f32({1}, {rank + 10.0}), 2, "b_1", "b");
    for (const Started* s : rank == 0 ? std::array{&a, &b} : std::array{&b, &a}) others.start(s->collective);
    for (const Started* s : {&b, &a}) others.wait(s->output);
    found[rank] = elements(Value(a.output));
    for (const double x : elements(Value(b.output))) found[rank].push_back(x);
  });
  QVERIFY2(!done.failure, done.failure ? all_lines(*done.failure).c_str() : "");
  QCOMPARE(found[0], (std::vector<double>{3, 11, 10}));  // in the group's order: rank 1 comes first
  QCOMPARE(found[1], found[0]);
}

void TestMeeting::groups_side_by_side() {
  const Job job{4, {{"even", {0, 2}}, {"odd", {1, 3}}}};
  std::vector<double> found(4);
  const TogetherRun done = run(job, [&](int rank, Communicator& others) {
    const Tensor sum = call(others, all_reduce(f32({1}, {double(rank)}), "sum_1", "sum", rank % 2 ? "odd" : "even"));
    found[rank] = elements(Value(call(others, all_reduce(sum, "sum_2", "max")))).front();
  });
  QVERIFY(!done.failure);
  QCOMPARE(found, (std::vector<double>{4, 4, 4, 4}));
}

void TestMeeting::messages_between_two() {
  std::vector<double> found;
  const TogetherRun done = run({.ranks = 3}, [&](int rank, Communicator& others) {
    for (const std::int64_t tag : {7, 8}) {
      Collective c{.group = "0", .root = rank == 0 ? 2 : 0, .tag = tag, .node = "p2p_1"};
      const Tensor out = *Tensor::zeros(DType::Float32, {1});
      if (rank == 0) {
        c.kind = Collective::Kind::Send;
        c.inputs = {f32({1}, {tag * 100.0})};
      } else {
        c.kind = Collective::Kind::Receive;
        c.tag = 15 - tag;  // the other way round
        c.outputs = {out};
      }
      if (rank != 1) others.start(c);
      if (rank == 0) continue;
      // Rank 2 waits for tag 8 first, which rank 0 sends last.
      if (rank == 2) {
        others.wait(out);
        found.push_back(*out.as<float>());
      }
    }
  });
  QVERIFY2(!done.failure, done.failure ? all_lines(*done.failure).c_str() : "");
  QCOMPARE(found, (std::vector<double>{800, 700}));
}

// One rank of 8 does something else at its third collective. What the job says names it, what it did, and where.
void TestMeeting::mismatch_data() {
  QTest::addColumn<QString>("what");
  QTest::addColumn<int>("odd");
  QTest::addColumn<QStringList>("says");
  const QString right = "all_reduce(sum, f32[2, 3])", gather = "all_gather(f32[2, 3], 8 ranks)";
  for (const int odd : {5, 0, 7}) {
    std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7};
    std::erase(all, odd);
    const QString one = QString("rank %1").arg(odd), others = QString::fromStdString(ranks_text(all));
    const auto row = [&](const char* what, const QStringList& says) {
      QTest::addRow("%s on rank %d", what, odd) << what << odd << says;
    };
    row("order", {"3rd collective: the collectives differ", right + " on " + others, gather + " on " + one,
                  "gather_4 (model.py:4)"});
    row("op", {"the reductions differ", "all_reduce(max, f32[2, 3]) on " + one, "at odd_9 (model.py:9)"});
    row("size", {"the sizes differ", "all_reduce(sum, f32[3, 2]) on " + one, "odd_9 (model.py:9)"});
    row("dtype", {"the dtypes differ", "all_reduce(sum, f64[2, 3]) on " + one});
    row("missing", {"the collectives differ", gather + " on " + one});
    row("missing at the end", {"no rank can go on: " + others + " wait for its 4th collective of group '0'",
                               "which " + one + " does not start (ended after 3 collectives of group '0')",
                               one + ": ended after 3 collectives"});
    row("group size", {"the group size differs: a call says 4"});
  }
  QTest::newRow("group") << "group" << 5
                         << QStringList{
                                "rank 5 starts all_reduce(sum, f32[2, 3]) at odd_9 (model.py:9): it is "
                                "not in group 'tp'"};
  QTest::newRow("own group") << "own group" << 5
                             << QStringList{"wait for its 3rd collective of group '0'", "which rank 5 does not start",
                                            "rank 5: waiting for its 1st collective of group 'own', " + right +
                                                " at odd_9 (model.py:9)"};
}

void TestMeeting::mismatch() {
  QFETCH(QString, what);
  QFETCH(int, odd);
  QFETCH(QStringList, says);
  const Job job{8, {{"tp", {0, 1, 2, 3}}, {"own", {4, 5}}}};
  const TogetherRun done = run(job, [&](int rank, Communicator& others) {
    const bool is_odd = rank == odd;
    for (int i = 0; i < 2; ++i) call(others, all_reduce(ones, fmt::format("reduce_{}", i)));
    Started third = all_reduce(ones, "reduce_2"), fourth = all_gather(ones, 8, "gather_4");
    if (is_odd && what == "order") std::swap(third, fourth);
    if (is_odd && what == "op") third = all_reduce(ones, "odd_9", "max");
    if (is_odd && what == "size") third = all_reduce(f32({3, 2}, {1, 1, 1, 1, 1, 1}), "odd_9");
    if (is_odd && what == "dtype") third = all_reduce(tensor(DType::Float64, {2, 3}, {1, 1, 1, 1, 1, 1}), "odd_9");
    if (is_odd && what == "group") third = all_reduce(ones, "odd_9", "sum", "tp");
    if (is_odd && what == "own group") third = all_reduce(ones, "odd_9", "sum", "own");
    if (what == "group size") fourth.collective.group_size = is_odd ? 4 : 8;
    if (!is_odd || what != "missing") call(others, third);
    if (!is_odd || what != "missing at the end") call(others, fourth);
  });
  QVERIFY(done.failure);
  const std::string text = all_lines(*done.failure);
  for (const QString& part : says)
    QVERIFY2(QString::fromStdString(text).contains(part), (text + "\nlacks " + part.toStdString()).c_str());
  QCOMPARE(done.failure->exit_code(), 2);
  QVERIFY(count(done, RankEnd::State::Done) <= 1);
  QCOMPARE(count(done, RankEnd::State::Failed), 0);
}

// Each of two ranks waits in its own group for somebody who waits in another.
void TestMeeting::crossed_groups() {
  const Job job{3, {{"a", {0, 1}}, {"b", {1, 2}}, {"c", {2, 0}}}};
  const TogetherRun done = run(job, [&](int rank, Communicator& others) {
    const char* first[] = {"a", "b", "c"};
    const char* second[] = {"c", "a", "b"};
    call(others, all_reduce(ones, "first_1", "sum", first[rank]));
    call(others, all_reduce(ones, "second_2", "sum", second[rank]));
  });
  QVERIFY(done.failure);
  const std::string text = all_lines(*done.failure);
  QCOMPARE(done.failure->code, std::string("ranks.deadlock"));
  for (const char* part :
       {"rank 0: waiting for its 1st collective of group 'a', all_reduce(sum, f32[2, 3]) at first_1 (model.py:1)",
        "rank 1: waiting for its 1st collective of group 'b'", "rank 2: waiting for its 1st collective of group 'c'"})
    QVERIFY2(text.find(part) != std::string::npos, text.c_str());
  QCOMPARE(count(done, RankEnd::State::Waits), 3);
}

void TestMeeting::nobody_sends() {
  const TogetherRun done = run({.ranks = 2}, [&](int rank, Communicator& others) {
    if (rank == 0) return;
    const Tensor out = *Tensor::zeros(DType::Float32, {4});
    others.start({.kind = Collective::Kind::Receive, .group = "0", .root = 0, .outputs = {out}, .node = "recv_1"});
    others.wait(out);
  });
  QVERIFY(done.failure);
  const std::string text = all_lines(*done.failure);
  QVERIFY2(text.find("rank 1 waits for its 1st receive(f32[4], from rank 0), which rank 0 does not start") !=
               std::string::npos,
           text.c_str());
}

void TestMeeting::a_rank_that_fails() {
  const TogetherRun done = run({.ranks = 4}, [&](int rank, Communicator& others) {
    call(others, all_reduce(ones, "reduce_1"));
    if (rank == 2) throw Raise{unsupported("test.failed", "no kernel")};
    call(others, all_reduce(ones, "reduce_2"));
  });
  QVERIFY(done.failure);
  QVERIFY(done.failure->line().find("rank 2: no kernel") != std::string::npos);
  QCOMPARE(done.failure->exit_code(), 3);
  QCOMPARE(done.ends[2].state, RankEnd::State::Failed);
  QCOMPARE(count(done, RankEnd::State::Failed), 1);
  QCOMPARE(count(done, RankEnd::State::Done), 0);
}

void TestMeeting::stops_on_request() {
  Progress progress;
  TogetherOptions options;
  options.progress = &progress;
  const auto done = run_together(
      {.ranks = 2},
      [&](int rank, Communicator& others, const Progress& asked) -> Status {
        if (rank == 0) call(others, all_reduce(ones, "reduce_1"));
        progress.stop = true;
        while (!asked.cancelled()) std::this_thread::yield();
        return stopped_on_request();
      },
      options);
  QVERIFY(!done);
  QCOMPARE(done.error().fault, Fault::Cancelled);
}

void TestMeeting::bad_jobs_data() {
  QTest::addColumn<int>("ranks");
  QTest::addColumn<QList<int>>("group");
  QTest::addColumn<QString>("says");
  QTest::newRow("no ranks") << 0 << QList<int>{0} << "0 ranks; a job has from 1 to 1024";
  QTest::newRow("too many") << 10000 << QList<int>{0} << "10000 ranks";
  QTest::newRow("absent rank") << 2 << QList<int>{0, 2} << "group 'g' names rank 2, and the job has the ranks 0 to 1";
  QTest::newRow("twice") << 2 << QList<int>{1, 1} << "group 'g' names rank 1 twice";
  QTest::newRow("empty") << 2 << QList<int>{} << "group 'g' has no ranks";
}

void TestMeeting::bad_jobs() {
  QFETCH(int, ranks);
  QFETCH(QList<int>, group);
  QFETCH(QString, says);
  const Job job{ranks, {{"g", std::vector<int>(group.begin(), group.end())}}};
  const auto done = run_together(job, [](int, Communicator&, const Progress&) { return Status(); });
  QVERIFY(!done);
  QVERIFY2(done.error().line().find(says.toStdString()) != std::string::npos, done.error().line().c_str());
  QCOMPARE(done.error().exit_code(), 2);
}

// A collective's memory that nobody waited for is used by the next one.
void TestMeeting::memory_used_again() {
  std::vector<std::vector<double>> found(2);
  const TogetherRun done = run({.ranks = 2}, [&](int rank, Communicator& others) {
    Started first = all_reduce(ones, "reduce_1"), second = all_reduce(f32({1}, {5}), "reduce_2");
    second.output = second.collective.outputs[0] = first.output.view_as({1}, {1}, 1);
    others.start(first.collective);
    call(others, second);
    found[rank] = elements(Value(first.output));
  });
  QVERIFY(!done.failure);
  QCOMPARE(found[0], (std::vector<double>{0, 10, 0, 0, 0, 0}));
  QCOMPARE(found[1], found[0]);
}

void TestMeeting::fills_what_nobody_waited_for() {
  std::vector<Tensor> kept(2);
  const TogetherRun done = run({.ranks = 2}, [&](int rank, Communicator& others) {
    const Started s = all_reduce(ones, "reduce_1");
    others.start(s.collective);
    kept[rank] = s.output;
  });
  QVERIFY(!done.failure);
  QCOMPARE(elements(Value(kept[1])), std::vector<double>(6, 2));
}

QTEST_APPLESS_MAIN(TestMeeting)
#include "test_meeting.moc"
