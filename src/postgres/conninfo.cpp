#include "postgres/conninfo.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>

#include "limitrow/errors.hpp"

namespace limitrow::postgres {
namespace {

using Parameters = std::map<std::string, std::string, std::less<>>;

Parameters parse(const std::string& database) {
  char* error = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options{
      PQconninfoParse(database.c_str(), &error), PQconninfoFree};
  PQfreemem(error);  // It may quote the string, and with it a password.
  if (!options) {
    throw OptionError{
        "the connection string cannot be read: expected a URI such as postgresql://host/database, "
        "or "
        "words such as host=... dbname=..."};
  }
  Parameters parameters;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val != nullptr) parameters[option->keyword] = option->val;
  }
  return parameters;
}

/// A parameter as libpq will see it: as given, or from the environment.
std::string effective(const Parameters& parameters, std::string_view keyword,
                      const char* variable) {
  const auto found = parameters.find(keyword);
  if (found != parameters.end()) return found->second;
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> items;
  std::size_t start = 0;
  while (true) {
    const std::size_t comma = list.find(',', start);
    items.push_back(list.substr(start, comma - start));
    if (comma == std::string::npos) return items;
    start = comma + 1;
  }
}

/// One word of libpq's `options`: blanks and backslashes are escaped with a backslash.
std::string option_word(const std::string& name, const std::string& value) {
  std::string word = "-c " + name + '=';
  for (const char c : value) {
    if (c == ' ' || c == '\\') word += '\\';
    word += c;
  }
  return word;
}

}  // namespace

std::vector<ConnectParameters> connect_parameters(const std::string& database,
                                                  const Settings& settings) {
  Parameters parameters = parse(database);

  std::string options = effective(parameters, "options", "PGOPTIONS");
  for (const auto& [name, value] : settings) {
    if (!options.empty()) options += ' ';
    options += option_word(name, value);
  }
  parameters["options"] = options;
  parameters["client_encoding"] = "UTF8";
  parameters.emplace("fallback_application_name", "limitrow");

  const auto hosts = split(effective(parameters, "host", "PGHOST"));
  const auto addresses = split(effective(parameters, "hostaddr", "PGHOSTADDR"));
  const auto ports = split(effective(parameters, "port", "PGPORT"));
  const std::size_t count = std::max(hosts.size(), addresses.size());
  const bool any_session = std::getenv("PGTARGETSESSIONATTRS") != nullptr;
  if (count > 1 && !any_session) parameters.emplace("target_session_attrs", "read-write");

  std::vector<ConnectParameters> targets;
  for (std::size_t i = 0; i < count; ++i) {
    Parameters target = parameters;
    const auto choose = [&](const char* keyword, const std::vector<std::string>& values) {
      // One value serves all hosts, as in libpq.
      const std::string& value =
          values.size() == 1 ? values.front() : values.at(std::min(i, values.size() - 1));
      if (!value.empty()) target[keyword] = value;
    };
    if (count > 1 || parameters.contains("host")) choose("host", hosts);
    if (count > 1 || parameters.contains("hostaddr")) choose("hostaddr", addresses);
    if (count > 1 || parameters.contains("port")) choose("port", ports);
    targets.emplace_back(target.begin(), target.end());
  }
  return targets;
}

}  // namespace limitrow::postgres
