/// Connection strings: what the caller wrote, with what limitrow needs added.
///
///     const Conninfo info{"postgresql:///app", settings};
///     for (const auto& host : info.hosts()) dial(host, ...);
///
/// Values; any thread may use one.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace limitrow::postgres {

/// libpq's keywords and their values, for one host.
using ConnectParameters = std::vector<std::pair<std::string, std::string>>;

/// Server settings, as {name, value}.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// Reads `database` and gives the parameters for each of its hosts in turn. A string that names
/// several hosts becomes several entries, so that a silent host costs its own share of the time and
/// not all of it. Of several hosts only one that takes writes will do (target_session_attrs),
/// unless the caller asked for something else.
///
/// `settings` are server settings to start the session with; what the caller's own options (or
/// PGOPTIONS) say about other settings is kept. Throws OptionError if `database` cannot be read.
/// The message does not repeat it: it may hold a password.
[[nodiscard]] std::vector<ConnectParameters> connect_parameters(const std::string& database,
                                                                const Settings& settings);

}  // namespace limitrow::postgres
