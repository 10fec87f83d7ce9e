// What writing a file does to what is there. Nothing here writes to a device.
#include <QTemporaryDir>
#include <QTest>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/output.h"

using namespace partita;
namespace fs = std::filesystem;

namespace {

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

mode_t mode_of(const fs::path& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

/// While it lives, no file grows beyond this size, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

}  // namespace

class TestOutput : public QObject {
  Q_OBJECT

  QTemporaryDir work_;
  fs::path folder_;
  int count_ = 0;

  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

 private Q_SLOTS:
  void init() {
    folder_ = fs::path(work_.path().toStdString()) / std::to_string(count_++);
    fs::create_directory(folder_);
  }

  /// Devices are not opened here: the decision is by the mode alone.
  void how_each_kind_of_file_is_written_data() {
    QTest::addColumn<uint>("mode");
    QTest::addColumn<int>("way");  // -1: refused
    QTest::newRow("file") << uint(S_IFREG | 0644) << int(OutputWay::Replace);
    QTest::newRow("fifo") << uint(S_IFIFO | 0644) << int(OutputWay::InPlace);
    QTest::newRow("character device") << uint(S_IFCHR | 0666) << int(OutputWay::InPlace);
    QTest::newRow("block device") << uint(S_IFBLK | 0660) << -1;
    QTest::newRow("folder") << uint(S_IFDIR | 0755) << -1;
    QTest::newRow("socket") << uint(S_IFSOCK | 0755) << -1;
  }
  void how_each_kind_of_file_is_written() {
    QFETCH(uint, mode);
    QFETCH(int, way);
    const auto found = output_way(mode, "x");
    QCOMPARE(found ? int(*found) : -1, way);
    if (!found) QCOMPARE(found.error().code, std::string("file.write"));
  }

  void a_new_file_has_the_usual_mode() {
    const mode_t mask = ::umask(027);
    const bool written = bool(write_file((folder_ / "data").string(), "x")) &&
                         bool(write_file((folder_ / "program").string(), "x", OutputKind::Program));
    ::umask(mask);
    QVERIFY(written);
    QCOMPARE(mode_of(folder_ / "data"), mode_t(0640));
    QCOMPARE(mode_of(folder_ / "program"), mode_t(0750));
  }

  void a_file_keeps_its_mode_data() {
    QTest::addColumn<int>("mode");
    for (int mode : {0600, 0644, 0664, 0755, 0777}) QTest::addRow("%o", mode) << mode;
  }
  void a_file_keeps_its_mode() {
    QFETCH(int, mode);
    const fs::path file = folder_ / "file";
    std::ofstream(file) << "before";
    fs::permissions(file, static_cast<fs::perms>(mode));
    QVERIFY(bool(write_file(file.string(), "after")));
    QCOMPARE(read(file), std::string("after"));
    QCOMPARE(mode_of(file), static_cast<mode_t>(mode));
    QVERIFY(bool(write_file((folder_ / "made").string(), "moved")));
    QVERIFY(bool(move_file((folder_ / "made").string(), file.string())));
    QCOMPARE(read(file), std::string("moved"));
    QCOMPARE(mode_of(file), static_cast<mode_t>(mode));
    QCOMPARE(entries(), std::size_t{1});
  }

  void links_are_followed_data() {
    QTest::addColumn<bool>("exists");
    QTest::addColumn<QString>("to");
    QTest::newRow("relative") << true << "sub/file";
    QTest::newRow("absolute") << true << "";
    QTest::newRow("to nothing yet") << false << "sub/file";
    QTest::newRow("of links") << true << "second";
  }
  void links_are_followed() {
    QFETCH(bool, exists);
    QFETCH(QString, to);
    fs::create_directory(folder_ / "sub");
    const fs::path file = folder_ / "sub" / "file", link = folder_ / "link";
    if (exists) std::ofstream(file) << "before";
    fs::create_symlink("sub/../sub/file", folder_ / "second");
    fs::create_symlink(to.isEmpty() ? file : fs::path(to.toStdString()), link);
    QVERIFY(bool(write_file(link.string(), "after")));
    QVERIFY(fs::is_symlink(link) && fs::is_symlink(folder_ / "second"));
    QVERIFY(!fs::is_symlink(file));
    QCOMPARE(read(file), std::string("after"));
  }

  /// Somebody who may write to the folder prepares a link under a name that a temporary file could have.
  void prepared_links_are_not_followed() {
    const fs::path precious = folder_ / "precious", file = folder_ / "file";
    std::ofstream(precious) << "precious";
    for (const std::string& suffix : {fmt_pid(".part"), fmt_pid(".tmp"), std::string(".part"), std::string(".tmp")})
      fs::create_symlink(precious, file.string() + suffix);
    QVERIFY(bool(write_file(file.string(), "new")));
    QCOMPARE(read(precious), std::string("precious"));
    QCOMPARE(read(file), std::string("new"));
  }

  void a_fifo_is_written_to() {
    const fs::path fifo = folder_ / "fifo", link = folder_ / "link";
    QCOMPARE(::mkfifo(fifo.c_str(), 0600), 0);
    fs::create_symlink("fifo", link);
    for (const fs::path& path : {fifo, link}) {
      auto reader = std::async(std::launch::async, [&] { return read(fifo); });
      QVERIFY(bool(write_file(path.string(), "through")));
      QCOMPARE(reader.get(), std::string("through"));
      QVERIFY(fs::is_fifo(fifo));
    }
    QCOMPARE(entries(), std::size_t{2});
  }

  /// A reader that goes away is an error, and does not end the process.
  void a_fifo_without_a_reader() {
    const fs::path fifo = folder_ / "fifo";
    QCOMPARE(::mkfifo(fifo.c_str(), 0600), 0);
    const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
    auto log = OutputLog::open(fifo.string());
    QVERIFY(bool(log));
    QVERIFY(bool(log->write("heard\n")));
    ::close(reader);
    const Status lost = log->write("lost\n");
    QVERIFY(!lost);
    QVERIFY(lost.error().line().find("Broken pipe") != std::string::npos);
  }

  /// What is behind a descriptor stays: a shell's `>> FILE` with -o /dev/stdout.
  void descriptors_are_written_to() {
    const fs::path file = folder_ / "file";
    std::ofstream(file) << "before ";
    const int fd = ::open(file.c_str(), O_WRONLY | O_APPEND);
    for (const char* stem : {"/proc/self/fd/", "/dev/fd/"})
      QVERIFY(bool(write_file(stem + std::to_string(fd), "after ")));
    ::close(fd);
    QCOMPARE(read(file), std::string("before after after "));
    QVERIFY(!write_file("/proc/self/fd/" + std::to_string(fd), "x"));
  }

  void what_cannot_be_written_is_refused_and_stays() {
    std::ofstream(folder_ / "file") << "x";
    fs::create_directory(folder_ / "sub");
    fs::create_symlink("loop", folder_ / "loop");
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    const std::string name = (folder_ / "socket").string();
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    QCOMPARE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const std::size_t before = entries();
    for (const char* path : {"sub", "sub/", "loop", "socket", "nowhere/file", "file/under", "new/"}) {
      const std::string whole = (folder_ / path).string();
      const Status written = write_file(whole, "y");
      QVERIFY2(!written, path);
      QCOMPARE(written.error().code, std::string("file.write"));
      QVERIFY2(written.error().line().find('\n') == std::string::npos, path);
      QVERIFY2(!output_place(whole), path);
    }
    ::close(socket);
    QCOMPARE(entries(), before);
    QCOMPARE(read(folder_ / "file"), std::string("x"));
    QVERIFY(bool(output_place((folder_ / "new").string())));
    QCOMPARE(entries(), before);
    if (::geteuid() == 0) return;  // may write everywhere
    fs::permissions(folder_ / "file", fs::perms::owner_read);
    QVERIFY(!write_file((folder_ / "file").string(), "y"));
    QCOMPARE(read(folder_ / "file"), std::string("x"));
  }

  void a_full_disk_loses_nothing() {
    const fs::path file = folder_ / "file", log = folder_ / "log";
    std::ofstream(file) << "before";
    auto opened = OutputLog::open(log.string());
    QVERIFY(bool(opened));
    const std::string many(10'000, 'x');
    const FullDisk full(5000);
    for (const fs::path& path : {file, folder_ / "new"}) {
      const Status written = write_file(path.string(), many);
      QVERIFY(!written);
      QCOMPARE(written.error().code, std::string("file.write"));
    }
    QVERIFY(!opened->write(many));
    QCOMPARE(read(file), std::string("before"));
    QCOMPARE(entries(), std::size_t{2});
  }

  void parts_follow_each_other() {
    const std::string_view parts[] = {"one ", "", "two"};
    QVERIFY(bool(write_file((folder_ / "file").string(), parts)));
    QCOMPARE(read(folder_ / "file"), std::string("one two"));
  }

  void folders() {
    std::ofstream(folder_ / "file") << "x";
    QVERIFY(bool(check_folder((folder_ / "a/b").string())));
    QVERIFY(!fs::exists(folder_ / "a"));
    QVERIFY(bool(make_folder((folder_ / "a/b").string())));
    QVERIFY(fs::is_directory(folder_ / "a/b"));
    for (const char* path : {"file", "file/sub"}) {
      QVERIFY(!check_folder((folder_ / path).string()));
      QVERIFY(!make_folder((folder_ / path).string()));
    }
  }

 private:
  static std::string fmt_pid(const char* suffix) { return "." + std::to_string(::getpid()) + suffix; }
};

QTEST_GUILESS_MAIN(TestOutput)
#include "test_output.moc"
