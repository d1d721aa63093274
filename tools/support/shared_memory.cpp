#include "support/shared_memory.hpp"

#include <fcntl.h>
#include <sys/shm.h>
#include <unistd.h>

#include <cstring>

namespace limitrow::support::detail {

void remove_shared_memory(const char* postmaster_pid_file) noexcept {
  char text[8192];
  const int fd = ::open(postmaster_pid_file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (n <= 0) return;
  text[n] = '\0';

  // Line 7 is "key id".
  const char* at = text;
  for (int line = 1; line < 7; ++line) {
    at = std::strchr(at, '\n');
    if (at == nullptr) return;
    ++at;
  }
  const auto number = [&at] {
    unsigned long value = 0;
    while (*at == ' ') ++at;
    for (; *at >= '0' && *at <= '9'; ++at) {
      value = value * 10 + static_cast<unsigned long>(*at - '0');
    }
    return value;
  };
  const auto key = static_cast<unsigned>(number());
  const int id = static_cast<int>(number());

  // The id may have gone to somebody else's segment since; the key tells.
  shmid_ds segment{};
  if (key == 0 || ::shmctl(id, IPC_STAT, &segment) != 0) return;
  if (static_cast<unsigned>(segment.shm_perm.__key) == key && segment.shm_nattch == 0) {
    ::shmctl(id, IPC_RMID, nullptr);
  }
}

}  // namespace limitrow::support::detail
