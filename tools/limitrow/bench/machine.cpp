/// this_machine of report.hpp.
#include <sys/utsname.h>

#include <fstream>
#include <thread>

#include "bench/report.hpp"

namespace limitrow::bench {
namespace {

/// What stands behind the first "name ... :" of a file, without blanks around it.
std::string entry_of(const std::string& file, const std::string& name) {
  std::ifstream stream{file};
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t colon = line.find(':');
    const std::size_t first = line.find_first_not_of(" \t", colon + 1);
    if (colon != std::string::npos && first != std::string::npos) return line.substr(first);
  }
  return {};
}

}  // namespace

Machine this_machine(const std::string& server_version) {
  utsname names{};
  ::uname(&names);
  const std::string processor = entry_of("/proc/cpuinfo", "model name");
  const std::string memory = entry_of("/proc/meminfo", "MemTotal");
#if defined(__clang__)
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "gcc " __VERSION__;
#endif
  return {.processor = processor.empty() ? names.machine : processor,
          .cores = std::thread::hardware_concurrency(),
          .memory_bytes = memory.empty() ? 0 : std::stod(memory) * 1024,
          .system = std::string{names.sysname} + " " + names.release,
          .server = server_version,
          .compiler = compiler};
}

}  // namespace limitrow::bench
