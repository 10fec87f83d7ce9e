#pragma once
#include <QStringList>
#include <cstdint>
#include <functional>
#include <string_view>
#include <type_traits>

namespace partita::views {

QString text(std::string_view utf8);
/// What `f`, a function or a member, gives for each item, as text.
QStringList texts(const auto& items, const auto& f) {
  QStringList out;
  for (const auto& item : items) {
    if constexpr (std::is_convertible_v<std::invoke_result_t<decltype(f), decltype(item)>, QString>)
      out << std::invoke(f, item);
    else
      out << text(std::invoke(f, item));
  }
  return out;
}
QStringList texts(const auto& strings) {
  return texts(strings, std::identity());
}
QString numbers_text(const auto& numbers) {
  return texts(numbers, [](auto n) { return QString::number(n); }).join(", ");
}
// As core/base/number_text.h writes them.
QString bytes_text(std::int64_t bytes);
QString seconds_text(double seconds);
QString error_text(double error);
QString count_text(std::int64_t n, const char* singular, const char* plural = nullptr);
QString amount_text(double n);

QString log_title(const QString& name);  ///< a name by torch.compile without what all have: "rank_0_x81.log"
/// "gpt2/program.pt2": files of one name are told apart by their folder, or by more than one.
QString file_title(const QString& path, int folders = 1);
QString file_name_of(const QString& title);     ///< a title as a file name
QStringList inputs_words(const QString& file);  ///< of a command line; empty: values that are made up
QString shell_word(const QString& word);        ///< quoted where a shell would take it for something else

}  // namespace partita::views
