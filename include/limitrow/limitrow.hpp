/// All of limitrow: rate limits as rows in PostgreSQL.
#pragma once

#include "limitrow/client_address.hpp"    // IWYU pragma: export
#include "limitrow/clock.hpp"             // IWYU pragma: export
#include "limitrow/doctor.hpp"            // IWYU pragma: export
#include "limitrow/errors.hpp"            // IWYU pragma: export
#include "limitrow/http.hpp"              // IWYU pragma: export
#include "limitrow/key.hpp"               // IWYU pragma: export
#include "limitrow/limiter.hpp"           // IWYU pragma: export
#include "limitrow/memory_limiter.hpp"    // IWYU pragma: export
#include "limitrow/migrator.hpp"          // IWYU pragma: export
#include "limitrow/postgres_limiter.hpp"  // IWYU pragma: export
#include "limitrow/purger.hpp"            // IWYU pragma: export
#include "limitrow/rule.hpp"              // IWYU pragma: export
#include "limitrow/statistics.hpp"        // IWYU pragma: export
#include "limitrow/top.hpp"               // IWYU pragma: export
#include "limitrow/verdict.hpp"           // IWYU pragma: export
