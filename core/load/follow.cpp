#include "core/load/follow.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>
#include <sys/stat.h>

#include "core/base/progress.h"
#include "core/load/sources.h"
#include "core/load/trace_log.h"

namespace partita {

namespace fs = std::filesystem;

/// Tells whether a file is the one that was read.
struct Followed::Stamp {
  std::uint64_t device = 0, number = 0;
  std::size_t size = 0;
  std::int64_t changed = 0;  ///< nanoseconds

  bool operator==(const Stamp&) const = default;
  bool same_file(const Stamp& other) const { return device == other.device && number == other.number; }

  static std::optional<Stamp> of(const std::string& path) {
    struct stat status;
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    return Stamp{status.st_dev, status.st_ino, static_cast<std::size_t>(status.st_size),
                 status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
  }
};

struct Followed::File {
  Stamp stamp;
  std::unique_ptr<TraceLogReader> log;  ///< null: not a log
  std::size_t read = 0;                 ///< bytes of the log; of a recording, how often it has changed
  std::vector<std::string> ids;         ///< of its artefacts, in order, where it is no log
  std::size_t dropped = 0;              ///< characters that ids of a folder's file are shorter by
};

namespace {

bool is_log(const FileBytes& bytes, const std::string& path) {
  return bytes.text().find('\0') == std::string_view::npos && is_trace_log(bytes.text(), path);
}

/// Adds artefacts that were loaded by themselves: the first ones again under these ids.
void add_under(const std::vector<std::string>& ids, std::vector<Artefact> artefacts, Loading& loading) {
  for (std::size_t i = 0; i < artefacts.size(); ++i) {
    if (i >= ids.size()) {
      loading.add(std::move(artefacts[i]));
    } else {
      artefacts[i].id = ids[i];
      loading.out.artefacts.push_back(std::move(artefacts[i]));
    }
  }
}

}  // namespace

void add_news(Loaded& loaded, LoadNews news) {
  std::unordered_map<std::string, std::size_t> places;  // not views: an id goes with the artefact that is replaced
  for (std::size_t i = 0; i < loaded.artefacts.size(); ++i) places.emplace(loaded.artefacts[i].id, i);
  std::vector<Artefact> added;
  for (Artefact& a : news.artefacts) {
    if (const auto place = places.find(a.id); place != places.end())
      loaded.artefacts[place->second] = std::move(a);
    else
      added.push_back(std::move(a));
  }
  std::ranges::move(added, std::back_inserter(loaded.artefacts));
  std::ranges::move(news.warnings, std::back_inserter(loaded.warnings));
}

Followed::Followed(std::string path) : path_(std::move(path)) {}
Followed::~Followed() = default;

Result<Loaded> Followed::begin(const Progress* progress) {
  const Progress silent;
  Loaded out;
  out.path = path_;
  files_.clear();
  Loading loading{out, progress ? *progress : silent};
  TRY_DO(look(loading, nullptr));
  copies_ = std::move(loading.copies);
  TRY_DO(check_not_empty(out));
  return out;
}

Result<LoadNews> Followed::next(const Progress* progress) {
  const Progress silent;
  Loaded out;
  LoadNews news;
  Loading loading{out, progress ? *progress : silent, std::move(copies_)};
  const Status looked = look(loading, &news);
  copies_ = std::move(loading.copies);
  TRY_DO(looked);
  news.artefacts = std::move(out.artefacts);
  news.warnings = std::move(out.warnings);
  return news;
}

std::vector<std::string> Followed::folders() const {
  std::vector<std::string> out = {fs::is_directory(path_) ? path_ : fs::path(path_).parent_path().string()};
  if (out[0].empty()) out[0] = ".";
  for (const auto& [path, file] : files_)
    if (std::string folder = fs::path(path).parent_path().string(); folder != out.back()) out.push_back(folder);
  return out;
}

/// `news`: null when nothing was read before.
Status Followed::look(Loading& loading, LoadNews* news) {
  std::error_code error;
  if (!fs::is_directory(path_, error)) return look_at(path_, "", loading, news);
  if (is_recording(path_)) return look_at_recording(loading, news);
  std::vector<std::string> files;
  const std::size_t known = loading.out.warnings.size();
  TRY_DO(list_files(path_, files, loading));
  if (news) loading.out.warnings.resize(known);  // they were said at the beginning
  TRY(auto parts, read_files(files, path_, loading, [&](const std::string& file, const std::string& prefix) {
        return look_at(file, prefix, loading, news);
      }));
  if (!news) shorten_ids(parts, loading.out.artefacts);
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::size_t& dropped = files_[files[i]].dropped;
    if (!news) dropped = parts[i].dropped;
    for (std::size_t k = parts[i].begin; news && k < parts[i].end; ++k)
      loading.out.artefacts[k].id.erase(0, dropped);  // as those of the file were shortened at the beginning
  }
  return {};
}

/// The files of a recording belong together: what is new in it is seen when it is opened again.
Status Followed::look_at_recording(Loading& loading, LoadNews* news) {
  const std::string session = (fs::path(path_) / "session.json").string();
  File& file = files_[session];
  const auto now = Stamp::of(session);
  if (!now || file.stamp == *now) return {};
  file.stamp = *now;
  if (!news) return load_recording(path_, loading);
  if (file.read++ == 0) news->rewritten.push_back(session);  // it is told once: a program that runs writes it often
  return {};
}

Status Followed::look_at(const std::string& path, const std::string& prefix, Loading& loading, LoadNews* news) {
  const std::optional<Stamp> now = Stamp::of(path);
  if (!now && news) return {};
  File& file = files_[path];
  if (now && news && file.stamp == *now) return {};
  const Stamp before = std::exchange(file.stamp, now.value_or(Stamp()));
  const bool is_new = before == Stamp();
  if (file.log && before.same_file(*now) && now->size >= file.read) {
    TRY(const auto bytes, FileBytes::open_from(path, file.read));
    return read_log(file, path, bytes, loading);
  }
  if (file.log || (!is_new && before.size > 0 && path == path_)) {
    news->rewritten.push_back(path);
    return {};
  }
  TRY(const auto bytes, FileBytes::open(path));
  if (is_log(*bytes, path)) {
    file.log = std::make_unique<TraceLogReader>(prefix);
    return read_log(file, path, bytes, loading);
  }
  return read_again(file, path, prefix, loading);
}

/// `bytes`: from where the log was left.
Status Followed::read_log(File& file, const std::string& path, const std::shared_ptr<const FileBytes>& bytes,
                          Loading& loading) {
  TRY(const std::size_t taken, file.log->read(bytes, false, loading));
  file.log->flush(loading);
  if (file.read == 0 && taken < bytes->text().size()) {
    TRY(const auto rest, FileBytes::open_from(path, taken));
    if (file.log->show_rest(rest, loading))
      loading.out.warnings.push_back(
          input_error("load.trace_log",
                      fmt::format("the last {} bytes are a record that is not complete; it is read when the rest comes",
                                  rest->text().size()),
                      {.file = path}));
  }
  file.read += taken;
  return {};
}

Status Followed::read_again(File& file, const std::string& path, const std::string& prefix, Loading& loading) {
  Loaded own;
  Loading apart{own, loading.progress};
  TRY_DO(load_file(path, prefix, path == path_, apart));
  const std::size_t first = loading.out.artefacts.size();
  add_under(file.ids, std::move(own.artefacts), loading);
  for (std::size_t i = first + file.ids.size(); i < loading.out.artefacts.size(); ++i)
    file.ids.push_back(loading.out.artefacts[i].id);
  std::ranges::move(own.warnings, std::back_inserter(loading.out.warnings));
  return {};
}

}  // namespace partita
