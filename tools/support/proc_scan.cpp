#include "support/proc_scan.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace limitrow::support::detail {
namespace {

// The kernel's record; readdir would allocate.
struct Entry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t length;
  std::uint8_t type;
};
constexpr std::size_t kNameOffset = 19;  // d_name follows d_type without padding

// 0 for a name that is not all digits.
pid_t to_pid(const char* name) {
  long value = 0;
  for (; *name != '\0'; ++name) {
    if (*name < '0' || *name > '9' || value > 99'999'999) return 0;
    value = value * 10 + (*name - '0');
  }
  return static_cast<pid_t>(value);
}

// The parent's process id in /proc/PID/stat: "PID (name) state PPID ...". The name may hold
// anything, parentheses too, so it ends at the last one.
pid_t parent_of(int proc, const char* pid) {
  char path[32] = {};
  const std::size_t digits = std::strlen(pid);
  std::memcpy(path, pid, digits);
  std::memcpy(path + digits, "/stat", sizeof "/stat");
  const int fd = ::openat(proc, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[1024];
  const ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (n <= 0) return 0;
  text[n] = '\0';
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || std::strlen(at) < 5) return 0;
  pid_t parent = 0;
  for (at += 4; *at >= '0' && *at <= '9'; ++at) parent = parent * 10 + (*at - '0');
  return parent;
}

}  // namespace

void for_each_child_of(pid_t parent, void (*visit)(pid_t child)) noexcept {
  const int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return;
  alignas(Entry) char buffer[8192];
  long n = 0;
  while ((n = ::syscall(SYS_getdents64, proc, buffer, sizeof buffer)) > 0) {
    for (long at = 0; at < n;) {
      Entry entry{};
      std::memcpy(&entry, buffer + at, sizeof entry);
      const char* name = buffer + at + kNameOffset;
      const pid_t pid = to_pid(name);
      if (pid > 0 && parent_of(proc, name) == parent) visit(pid);
      at += entry.length;
    }
  }
  ::close(proc);
}

}  // namespace limitrow::support::detail
