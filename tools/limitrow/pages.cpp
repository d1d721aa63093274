/// The manual page and the shell completions, made from the command's own options, so that none of
/// them can tell another story than --help. The build runs this; it is not listed in --help.
#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>

#include "common.hpp"

namespace limitrow::cli {
namespace {

/// The subcommands that --help lists, those below others as well, as {words, app}.
std::vector<std::pair<std::string, const CLI::App*>> commands_of(const CLI::App& app,
                                                                 const std::string& words = {}) {
  std::vector<std::pair<std::string, const CLI::App*>> commands;
  for (const CLI::App* sub :
       app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); })) {
    const std::string name = words.empty() ? sub->get_name() : words + " " + sub->get_name();
    const auto below = commands_of(*sub, name);
    if (below.empty()) commands.emplace_back(name, sub);
    commands.insert(commands.end(), below.begin(), below.end());
  }
  return commands;
}

std::vector<std::string> option_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  std::sort(words.begin(), words.end());
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// Text for troff: no backslash, no control line, hyphens that can be copied.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  if (escaped.starts_with('.') || escaped.starts_with('\'')) escaped.insert(0, "\\&");
  return escaped;
}

std::string sentence(std::string text) {
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

/// "N" out of "N:INT in [1 - 9]".
std::string word_of_type(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  return name.substr(0, name.find(':'));
}

void options_as_roff(const CLI::App& app, const std::vector<std::string>& without) {
  for (const CLI::Option* option : app.get_options()) {
    const bool positional = option->get_positional();
    std::string name = positional ? option->get_name(true) : option->get_name(false, true);
    if (option->get_lnames().size() + option->get_snames().size() > 0 && !positional) {
      name =
          "--" + (option->get_lnames().empty() ? option->get_name() : option->get_lnames().front());
      if (std::find(without.begin(), without.end(), name) != without.end()) continue;
    }
    if (name == "--help") continue;
    std::cout << ".TP\n\\fB" << roff(name) << "\\fR";
    if (!positional && !option->get_type_name().empty() && option->get_expected_max() > 0) {
      std::cout << " \\fI" << roff(word_of_type(*option)) << "\\fR";
    }
    std::string description = sentence(option->get_description());
    if (!option->get_default_str().empty() && option->get_expected_max() > 0) {
      description += " Default: " + option->get_default_str() + ".";
    }
    std::cout << "\n" << roff(description) << "\n";
  }
}

void manual(const CLI::App& app) {
  const auto commands = commands_of(app);
  std::cout << ".TH LIMITROW 1 \"\" \"limitrow " LIMITROW_VERSION
               "\" \"User Commands\"\n"
               ".SH NAME\nlimitrow \\- rate limits as rows in PostgreSQL\n.SH SYNOPSIS\n";
  for (const auto& [name, command] : commands) {
    std::cout << ".br\n\\fBlimitrow " << roff(name) << "\\fR";
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_positional()) std::cout << " \\fI" << roff(option->get_name(true)) << "\\fR";
    }
    std::cout << " [\\fIoptions\\fR]\n";
  }
  std::cout << ".SH DESCRIPTION\nA limit is a row: one upsert statement for each check, shared by "
               "every process that reaches the database.\n.SH COMMON OPTIONS\nEvery command but "
               "\\fBdemo\\fR takes these.\n";
  CLI::App common_only;
  Common values;
  add_command(common_only, values, "any", "", [] {});
  const CLI::App* any = common_only.get_subcommand("any");
  options_as_roff(*any, {});
  const std::vector<std::string> shared = option_words(*any);
  std::cout << ".SH COMMANDS\n";
  for (const auto& [name, command] : commands) {
    std::cout << ".SS limitrow " << roff(name) << "\n"
              << roff(sentence(command->get_description())) << "\n";
    options_as_roff(*command, shared);
  }
  std::cout << ".SH NOTES\n.nf\n";
  std::istringstream footer{app.get_footer()};
  for (std::string line; std::getline(footer, line);) std::cout << roff(line) << "\n";
  std::cout << ".fi\n.SH ENVIRONMENT\nWhat \\fB\\-\\-database\\fR leaves out comes from libpq's "
               "variables: PGHOST, PGPORT, PGUSER, PGDATABASE, PGSERVICE, PGPASSFILE and so on.\n";
}

void bash(const CLI::App& app) {
  std::cout << "# bash completion for limitrow\n_limitrow() {\n"
               "  local word=${COMP_WORDS[COMP_CWORD]} words='' command='' i\n"
               "  for ((i = 1; i < COMP_CWORD && i < 3; i++)); do\n"
               "    [[ ${COMP_WORDS[i]} == -* ]] || command+=\"${command:+ }${COMP_WORDS[i]}\"\n"
               "  done\n  case $command in\n    '') words='";
  std::vector<std::string> names;
  for (const auto& [name, command] : commands_of(app)) {
    const std::string first = name.substr(0, name.find(' '));
    if (names.empty() || names.back() != first) names.push_back(first);
  }
  std::cout << joined(names) << " --help --version' ;;\n";
  std::vector<std::string> below;
  for (const auto& [name, command] : commands_of(app)) {
    const std::size_t blank = name.find(' ');
    if (blank != std::string::npos) below.push_back(name.substr(blank + 1));
  }
  std::cout << "    migrate) words='" << joined(below) << " --help' ;;\n";
  for (const auto& [name, command] : commands_of(app)) {
    std::cout << "    '" << name << "'" << (name.find(' ') == std::string::npos ? "*" : "")
              << ") words='" << joined(option_words(*command)) << "' ;;\n";
  }
  std::cout << "  esac\n  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n}\n"
               "complete -o default -F _limitrow limitrow\n";
}

/// Text between single quotes in zsh's specifications.
std::string zsh_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
    } else {
      if (c == ':' || c == '[' || c == ']' || c == '\\') escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

void zsh_commands(const CLI::App& app) {
  for (const CLI::App* sub :
       app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); })) {
    std::cout << "      '" << sub->get_name() << ":" << zsh_text(sub->get_description()) << "'\n";
  }
}

void zsh(const CLI::App& app) {
  std::cout << "#compdef limitrow\n_limitrow() {\n  local -a commands\n"
               "  local command=${words[2]:-}\n"
               "  if (( CURRENT == 2 )); then\n    commands=(\n";
  zsh_commands(app);
  std::cout << "    )\n    _describe command commands\n    return\n  fi\n"
               "  if [[ $command == migrate ]] && (( CURRENT == 3 )); then\n    commands=(\n";
  zsh_commands(*app.get_subcommand("migrate"));
  std::cout << "    )\n    _describe command commands\n    return\n  fi\n"
               "  [[ $command == migrate ]] && command=\"migrate ${words[3]}\"\n"
               "  case $command in\n";
  for (const auto& [name, command] : commands_of(app)) {
    std::cout << "    '" << name << "')\n      _arguments";
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_lnames().empty()) continue;
      std::cout << " \\\n        '--" << option->get_lnames().front() << "["
                << zsh_text(option->get_description()) << "]";
      if (option->get_expected_max() > 0 && option->get_type_size_max() > 0) std::cout << ":value:";
      std::cout << "'";
    }
    std::cout << " \\\n        '*:: :_default' ;;\n";
  }
  std::cout << "  esac\n}\n_limitrow \"$@\"\n";
}

}  // namespace

void add_pages(CLI::App& app, Common&) {
  const auto kind = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("pages", "The manual page or a shell's completion")
                          ->group("")
                          ->callback([kind, &app] {
                            if (*kind == "man") manual(app);
                            if (*kind == "bash") bash(app);
                            if (*kind == "zsh") zsh(app);
                          });
  command->add_option("KIND", *kind, "man, bash or zsh")
      ->required()
      ->check(CLI::IsMember({"man", "bash", "zsh"}));
}

}  // namespace limitrow::cli
