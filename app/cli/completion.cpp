// The verb completion: writes completion scripts for bash, zsh and fish, and the manual page, from the verbs and
// options that CLI11 knows.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/cli/command.h"

namespace partita::cli {
namespace {

/// An option of a verb, as a shell completes it.
struct Word {
  std::vector<std::string> names;  ///< "--graph", "-o"
  std::string what;
  bool takes_value = false;
  std::vector<std::string> choices;  ///< of its value; empty: a file or free text
};

struct Verb {
  std::string name, what;
  std::vector<Word> words;
};

/// The values of a check like IsMember, which CLI11 shows as "{a,b}".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string shown = option.get_type_name();
  const std::size_t begin = shown.find('{'), end = shown.find('}', begin);
  if (end == std::string::npos) return {};
  return CLI::detail::split(shown.substr(begin + 1, end - begin - 1), ',');
}

std::vector<Word> words_of(const CLI::App& app) {
  std::vector<Word> words;
  for (const CLI::Option* option : app.get_options()) {
    Word word;
    for (const std::string& name : option->get_lnames()) word.names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) word.names.push_back("-" + name);
    if (word.names.empty()) continue;  // a file
    word.what = option->get_description();
    word.takes_value = option->get_items_expected_max() > 0;
    word.choices = choices_of(*option);
    words.push_back(std::move(word));
  }
  return words;
}

std::vector<Verb> verbs_of(const CLI::App& program) {
  std::vector<Verb> verbs;
  const auto in_help = [](const CLI::App* app) { return !app->get_group().empty(); };
  for (const CLI::App* app : program.get_subcommands(in_help))
    verbs.push_back({app->get_name(), app->get_description(), words_of(*app)});
  std::ranges::sort(verbs, {}, &Verb::name);
  return verbs;
}

/// `text` between single quotes, for a shell whose quotes cannot be escaped within quotes.
std::string quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string all_names(const std::vector<Word>& words) {
  std::vector<std::string> names;
  for (const Word& word : words) names.insert(names.end(), word.names.begin(), word.names.end());
  return fmt::format("{}", fmt::join(names, " "));
}

std::string bash(const std::vector<Verb>& verbs, const std::vector<Word>& common) {
  std::string values, options, names;
  for (const Verb& verb : verbs) {
    names += verb.name + " ";
    options += fmt::format("    {}) words={} ;;\n", verb.name, quoted(all_names(verb.words)));
    for (const Word& word : verb.words)
      for (const std::string& name : word.names)
        if (!word.choices.empty())
          values += fmt::format("    {},{}) words={} ;;\n", verb.name, name,
                                quoted(fmt::format("{}", fmt::join(word.choices, " "))));
  }
  return fmt::format(R"(_partita() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} verb= words= i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${{COMP_WORDS[i]}} in -*) ;; *) verb=${{COMP_WORDS[i]}}; break ;; esac
  done
  case $verb,$before in
{}  esac
  if [[ -n $words ]]; then COMPREPLY=($(compgen -W "$words" -- "$cur")); return; fi
  if [[ -z $verb ]]; then COMPREPLY=($(compgen -W "{}{}" -- "$cur") $(compgen -f -- "$cur")); return; fi
  if [[ $cur != -* ]]; then COMPREPLY=($(compgen -f -- "$cur")); return; fi
  case $verb in
{}  esac
  COMPREPLY=($(compgen -W "$words {}" -- "$cur"))
}}
complete -o filenames -F _partita partita
)",
                     values, names, all_names(common), options, all_names(common));
}

std::string zsh(const std::vector<Verb>& verbs, const std::vector<Word>& common) {
  std::string list, cases;
  for (const Verb& verb : verbs) {
    list += "    " + quoted(verb.name + ":" + verb.what) + "\n";
    cases += fmt::format("    {}) _arguments", verb.name);
    for (const auto* words : {&verb.words, &common})
      for (const Word& word : *words)
        for (const std::string& name : word.names) {
          std::string spec = fmt::format("{}[{}]", name, escaped(word.what, "[]:\\"));
          if (word.takes_value)
            spec += word.choices.empty() ? ":value:_files" : fmt::format(":value:({})", fmt::join(word.choices, " "));
          cases += " \\\n        " + quoted(spec);
        }
    cases += " \\\n        '*:file:_files' ;;\n";
  }
  return fmt::format(R"(#compdef partita
_partita() {{
  local -a verbs=(
{}  )
  if (( CURRENT == 2 )); then _describe verb verbs; _files; return; fi
  local verb=$words[2]
  shift words; (( CURRENT-- ))
  case $verb in
{}  esac
}}
compdef _partita partita
)",
                     list, cases);
}

std::string fish(const std::vector<Verb>& verbs, const std::vector<Word>& common) {
  std::string text;
  const auto add = [&](const std::string& where, const Word& word) {
    text += "complete -c partita" + where;
    for (const std::string& name : word.names)
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (word.takes_value) text += " -r";
    if (!word.choices.empty()) text += " -f -a " + quoted(fmt::format("{}", fmt::join(word.choices, " ")));
    text += " -d '" + escaped(word.what, "'\\") + "'\n";
  };
  for (const Word& word : common) add("", word);
  for (const Verb& verb : verbs) {
    text += fmt::format("complete -c partita -n __fish_use_subcommand -a {} -d '{}'\n", verb.name,
                        escaped(verb.what, "'\\"));
    for (const Word& word : verb.words) add(" -n '__fish_seen_subcommand_from " + verb.name + "'", word);
  }
  return text;
}

std::string man(const std::vector<Verb>& verbs, const std::vector<Word>& common, const CLI::App& program) {
  const auto plain = [](std::string_view text) {
    std::string out = escaped(text, "\\-");
    return (out.starts_with('.') || out.starts_with('\'') ? "\\&" : "") + out;
  };
  const auto list = [&](const std::vector<Word>& words) {
    std::string text;
    for (const Word& word : words) {
      std::string value;
      if (word.takes_value)
        value = word.choices.empty() ? " \\fIvalue\\fR"
                                     : fmt::format(" {}", plain(fmt::format("{}", fmt::join(word.choices, "|"))));
      text += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", plain(fmt::format("{}", fmt::join(word.names, ", "))), value,
                          plain(word.what));
    }
    return text;
  };
  std::string text = fmt::format(
      ".TH PARTITA 1 \"\" \"partita {}\"\n.SH NAME\npartita \\- a workbench for PyTorch graphs\n.SH SYNOPSIS\n"
      ".B partita\n[\\fIverb\\fR] [\\fIoptions\\fR] [\\fIfile\\fR ...]\n.SH DESCRIPTION\n{}\nA file in place of a verb "
      "is "
      "opened in the window.\n.SH OPTIONS\n{}",
      PARTITA_VERSION, plain(program.get_description()), list(common));
  for (const Verb& verb : verbs)
    text += fmt::format(".SH \"partita {}\"\n{}\n{}", verb.name, plain(verb.what), list(verb.words));
  return text + fmt::format(".SH EXIT STATUS\n{}\n", plain(program.get_footer()));
}

}  // namespace

extern const Command completion_command = {
    "completion", "Completion for a shell, or the manual page, from the table of verbs", [](CLI::App& app) -> Action {
      auto what = std::make_shared<std::string>();
      app.add_option("what", *what, "bash, zsh, fish or man")
          ->required()
          ->check(CLI::IsMember({"bash", "zsh", "fish", "man"}));
      return [what, program = app.get_parent()]() -> Result<int> {
        const std::vector<Verb> verbs = verbs_of(*program);
        const std::vector<Word> common = words_of(*program);
        std::string text = *what == "bash"   ? bash(verbs, common)
                           : *what == "zsh"  ? zsh(verbs, common)
                           : *what == "fish" ? fish(verbs, common)
                                             : man(verbs, common, *program);
        fmt::print("{}", text);
        return 0;
      };
    }};

}  // namespace partita::cli
