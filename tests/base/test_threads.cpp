// Parallel regions: each part runs once, in whichever order the machine runs threads.
#include <QTest>
#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/openmp.h"
#include "core/base/threads.h"

using namespace partita;

class TestThreads : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void each_element_is_in_one_part_data() {
    QTest::addColumn<int>("threads");
    QTest::addColumn<int>("n");
    QTest::addColumn<int>("grain");
    QTest::addColumn<int>("alignment");
    QTest::newRow("nothing") << 4 << 0 << 1 << 1;
    QTest::newRow("less than a grain") << 4 << 9 << 10 << 1;
    QTest::newRow("one thread") << 1 << 1000 << 1 << 1;
    QTest::newRow("aligned") << 3 << 1000 << 1 << 64;
    QTest::newRow("more threads than elements") << 16 << 5 << 1 << 1;
  }
  void each_element_is_in_one_part() {
    QFETCH(int, threads);
    QFETCH(int, n);
    QFETCH(int, grain);
    QFETCH(int, alignment);
    for (int run = 0; run < 200; ++run) {
      std::vector<std::atomic<int>> met(static_cast<std::size_t>(n));
      std::vector<std::atomic<int>> parts(static_cast<std::size_t>(threads));
      std::atomic<int> bad = 0;
      parallel_for(threads, n, grain, alignment, [&](std::int64_t begin, std::int64_t end, int thread) {
        if (begin % alignment != 0 || begin >= end || thread >= threads) ++bad;
        if (parts[static_cast<std::size_t>(thread)]++ != 0) ++bad;  // its scratch is its own
        for (std::int64_t i = begin; i < end; ++i) ++met[static_cast<std::size_t>(i)];
      });
      QCOMPARE(bad.load(), 0);
      for (const std::atomic<int>& m : met) QCOMPARE(m.load(), 1);
    }
  }

  /// Several threads may have regions at a time.
  void regions_of_several_threads() {
    std::atomic<std::int64_t> sum = 0;
    {
      std::vector<std::jthread> masters;
      for (int m = 0; m < 4; ++m)
        masters.emplace_back([&sum] {
          for (int run = 0; run < 300; ++run)
            parallel_for(2 + run % 3, 100, 1, 1, [&sum](std::int64_t begin, std::int64_t end, int) {
              for (std::int64_t i = begin; i < end; ++i) sum += i;
            });
        });
    }
    QCOMPARE(sum.load(), std::int64_t{4 * 300 * 4950});
  }

  void within_a_region_there_is_one_thread() {
    std::atomic<int> inner = 0, outer = 0;
    std::atomic<bool> told = true;
    QVERIFY(!omp_in_parallel());
    parallel_for(3, 3, 1, 1, [&](std::int64_t, std::int64_t, int) {
      ++outer;
      if (!omp_in_parallel() || omp_get_num_threads() != 3) told = false;
      parallel_for(4, 4, 1, 1, [&](std::int64_t begin, std::int64_t end, int) {
        inner += static_cast<int>(end - begin);
        if (omp_get_num_threads() != 1 || omp_get_thread_num() != 0) told = false;
      });
    });
    QCOMPARE(outer.load(), 3);
    QCOMPARE(inner.load(), 12);
    QVERIFY(told);
    QVERIFY(!omp_in_parallel());
    QCOMPARE(omp_get_num_threads(), 1);
  }

  /// oneDNN's reductions wait for each other within a region.
  void shares_wait_at_a_barrier() {
    struct Region {
      std::atomic<int> before{0}, between{0}, early{0};
    };
    for (int run = 0; run < 200; ++run) {
      Region region;
      GOMP_parallel(
          [](void* data) {
            auto& r = *static_cast<Region*>(data);
            const int all = omp_get_num_threads();
            ++r.before;
            GOMP_barrier();
            if (r.before != all) ++r.early;
            ++r.between;
            GOMP_barrier();
            if (r.between != all) ++r.early;
          },
          &region, 3, 0);
      QCOMPARE(region.before.load(), 3);
      QCOMPARE(region.early.load(), 0);
    }
    GOMP_barrier();  // outside of a region nobody is waited for
  }

  void the_wanted_number_is_each_threads_own() {
    omp_set_num_threads(3);
    QCOMPARE(omp_get_max_threads(), 3);
    std::jthread([] { QVERIFY(omp_get_max_threads() >= 1); }).join();
    std::mutex mutex;
    std::set<int> seen;
    struct Region {
      std::mutex& mutex;
      std::set<int>& seen;
    } region{mutex, seen};
    GOMP_parallel(
        [](void* data) {
          auto& r = *static_cast<Region*>(data);
          const std::lock_guard lock(r.mutex);
          r.seen.insert(omp_get_thread_num());
          if (omp_get_max_threads() != 3) r.seen.insert(-1);
        },
        &region, 0, 0);
    QCOMPARE(seen, (std::set<int>{0, 1, 2}));
    omp_set_num_threads(1);
  }

  void a_forked_process_has_threads_of_its_own() {
    const auto add_up = [] {
      std::atomic<int> sum = 0;
      parallel_for(2, 10, 1, 1,
                   [&sum](std::int64_t begin, std::int64_t end, int) { sum += static_cast<int>(end - begin); });
      return sum.load();
    };
    QCOMPARE(add_up(), 10);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      ::_exit(add_up() == 10 ? 0 : 1);
    }
    int status = -1;
    QCOMPARE(::waitpid(child, &status, 0), child);
    QCOMPARE(status, 0);
  }

  /// Who leaves a share by an exception gets it from the region, once nobody reads its data any more, and computes with
  /// all threads afterwards. `raises`: the shares that raise, as bits.
  void exceptions_leave_regions_data() {
    QTest::addColumn<int>("raises");
    QTest::newRow("the caller's share") << 1;
    QTest::newRow("another thread's") << 4;
    QTest::newRow("all") << 15;
  }
  void exceptions_leave_regions() {
    QFETCH(int, raises);
    for (int run = 0; run < 50; ++run) {
      std::atomic<int> begun = 0;
      std::string caught;
      try {
        parallel_for(4, 4, 1, 1, [&](std::int64_t begin, std::int64_t, int) {
          ++begun;
          if (raises >> begin & 1) throw std::runtime_error("raised");
        });
      } catch (const std::runtime_error& error) {
        caught = error.what();
      }
      QCOMPARE(caught, std::string("raised"));
      QCOMPARE(begun.load(), 4);
      QVERIFY(!omp_in_parallel());
      std::atomic<int> shares = 0;
      parallel_for(4, 4, 1, 1, [&](std::int64_t, std::int64_t, int) { shares = omp_get_num_threads(); });
      QCOMPARE(shares.load(), 4);
    }
  }
  void exceptions_leave_inner_regions() {
    std::atomic<bool> told = true;
    parallel_for(2, 2, 1, 1, [&](std::int64_t, std::int64_t, int) {
      const int index = omp_get_thread_num();
      try {
        parallel_for(2, 2, 1, 1, [](std::int64_t, std::int64_t, int) { throw std::runtime_error("raised"); });
      } catch (const std::runtime_error&) {
      }
      if (omp_get_thread_num() != index || omp_get_num_threads() != 2) told = false;
    });
    QVERIFY(told);
  }

  /// As oneDNN's references to libgomp are resolved.
  void libraries_find_these_functions() {
    for (const char* name : {"GOMP_parallel", "GOMP_barrier", "omp_get_max_threads", "omp_get_num_threads",
                             "omp_get_thread_num", "omp_in_parallel"}) {
      void* found = ::dlsym(RTLD_DEFAULT, name);
      Dl_info where{}, here{};
      QVERIFY2(found && ::dladdr(found, &where) != 0, name);
      QVERIFY(::dladdr(reinterpret_cast<void*>(&run_parts), &here) != 0);
      QCOMPARE(where.dli_fbase, here.dli_fbase);
    }
  }
};

QTEST_GUILESS_MAIN(TestThreads)
#include "test_threads.moc"
