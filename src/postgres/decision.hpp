/// Decision: several limits as one, all or nothing.
///
/// Rules of one algorithm are one statement, in its all-or-nothing form: it charges either every
/// row or none, and raises where the locked rows would grant only a part. Then it is asked again
/// and sees those rows. Nothing is compensated afterwards: a refund after a window turned would
/// admit too much, and a crash before it would leave a refused check charged. Several algorithms
/// are one transaction, in a fixed order of algorithms and keys, rolled back as a whole.
#pragma once

#include <vector>

#include "algorithm/parts.hpp"
#include "postgres/denial_cache.hpp"
#include "postgres/session.hpp"

namespace limitrow::postgres {

/// One verdict per part, in their order. `parts` are sorted by algorithm and key; batch.now is the
/// time to judge by. The rows that refused are added to `denials`. Throws SessionFailure.
[[nodiscard]] std::vector<Verdict> decide(Session& session, Batch& batch,
                                          const std::vector<algorithm::Part>& parts,
                                          std::vector<Denial>& denials);

}  // namespace limitrow::postgres
