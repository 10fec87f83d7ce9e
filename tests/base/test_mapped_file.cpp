#include <QFile>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/mapped_file.h"

using namespace partita;

namespace {

constexpr qsizetype bytes = 32 << 20;

/// Of the process, in files that it has mapped.
qint64 resident_bytes() {
  QFile status("/proc/self/status");
  if (!status.open(QIODevice::ReadOnly)) qFatal("no /proc/self/status");
  for (const QByteArray& line : status.readAll().split('\n'))
    if (line.startsWith("RssFile:")) return line.simplified().split(' ')[1].toLongLong() * 1024;
  qFatal("no RssFile");
}

}  // namespace

class TestMappedFile : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() {
    QVERIFY(folder_.isValid());
    QFile file(path_);
    QVERIFY(file.open(QIODevice::WriteOnly));
    QCOMPARE(file.write(written_), bytes);
    file.close();
    const int opened = ::open(path_.toLocal8Bit().constData(), O_RDONLY | O_CLOEXEC);
    QVERIFY(opened >= 0);
    mapped_ = MappedFile::map(opened);
    ::close(opened);
    if (!mapped_) QSKIP("the file system of the temporary folder gives no leases");
    QCOMPARE(qsizetype(mapped_->size()), bytes);
  }
  void cleanup() { mapped_.reset(); }

  void another_program_may_truncate_the_file() {
    QCOMPARE(content(), written_);
    QCOMPARE(QProcess::execute("sh", {"-c", "echo other > \"$1\"", "sh", path_}), 0);
    QCOMPARE(QFileInfo(path_).size(), 6);
    QCOMPARE(content(), written_);
    leave_in_file(mapped_->data(), mapped_->size());  // there is no file any more to read them from
    QCOMPARE(content(), written_);
  }

  /// The forked process reads the file after it was truncated.
  void a_forked_process_has_a_copy() {
    auto files = copy_mapped_files();
    QVERIFY(files);
    int truncated[2];
    QCOMPARE(::pipe(truncated), 0);
    const pid_t child = ::fork();
    files->unlock();
    if (child == 0) {
      char byte;
      const bool told = ::read(truncated[0], &byte, 1) == 1;
      ::_exit(told && content() == written_ ? 0 : 1);
    }
    QVERIFY(child > 0);
    QVERIFY(QFile::resize(path_, 0));
    QCOMPARE(::write(truncated[1], "!", 1), 1);
    int status = -1;
    QCOMPARE(::waitpid(child, &status, 0), child);
    QCOMPARE(status, 0);
    ::close(truncated[0]);
    ::close(truncated[1]);
  }

  void a_file_that_is_being_written_is_not_mapped() {
    mapped_.reset();
    QFile writer(path_);
    QVERIFY(writer.open(QIODevice::ReadWrite));
    QFile reader(path_);
    QVERIFY(reader.open(QIODevice::ReadOnly));
    QVERIFY(!MappedFile::map(reader.handle()));
    QVERIFY(!MappedFile::map(-1));
  }

  void what_is_left_in_the_file_takes_no_memory() {
    const qint64 before = resident_bytes();
    QCOMPARE(content(), written_);
    QVERIFY(resident_bytes() > before + bytes / 2);
    leave_in_file(mapped_->data(), mapped_->size());
    QVERIFY(resident_bytes() < before + bytes / 2);
    QCOMPARE(content(), written_);
  }

  void other_memory_is_never_given_back() {
    QByteArray own(bytes, 'o');
    leave_in_file(own.constData(), bytes);
    QCOMPARE(own, QByteArray(bytes, 'o'));
  }

 private:
  QByteArray content() const {
    return QByteArray::fromRawData(reinterpret_cast<const char*>(mapped_->data()), qsizetype(mapped_->size()));
  }

  const QTemporaryDir folder_;
  const QString path_ = folder_.filePath("file");
  const QByteArray written_ = QByteArray(bytes / 2, 'a') + QByteArray(bytes / 2, 'b');
  std::unique_ptr<MappedFile> mapped_;
};

QTEST_GUILESS_MAIN(TestMappedFile)
#include "test_mapped_file.moc"
