#pragma once
#include <QString>
#include <cstdint>
#include <string_view>

namespace partita::views {

QString text(std::string_view utf8);
// As core/base/number_text.h writes them.
QString bytes_text(std::int64_t bytes);
QString seconds_text(double seconds);
QString error_text(double error);
QString count_text(std::int64_t n, const char* singular, const char* plural = nullptr);
QString amount_text(double n);

QString log_title(const QString& name);  ///< a name by torch.compile without what all have: "rank_0_x81.log"
/// "gpt2/program.pt2": files of one name are told apart by their folder, or by more than one.
QString file_title(const QString& path, int folders = 1);
QString file_name_of(const QString& title);  ///< a title as a file name
QString shell_word(const QString& word);     ///< quoted where a shell would take it for something else

}  // namespace partita::views
