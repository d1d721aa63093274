/// Blanks, case and Unicode normalisation, by utf8proc: the same in every locale.
#pragma once

#include <string>
#include <string_view>

#include "limitrow/key.hpp"

namespace limitrow::identity {

/// `text` after what `options` say; hmac_key plays no part. `text` must be valid UTF-8, and so is
/// the result, which may be empty. What was normalised once is not changed by doing it again.
[[nodiscard]] std::string normalise(std::string_view text, const PartOptions& options);

}  // namespace limitrow::identity
