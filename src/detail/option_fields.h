#pragma once

#include <sgdph/detail/fields.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// What is read off an option class's list of fields.

namespace sgdph::detail {

/// Throws with option, value and bound if a field is out of range; `where` opens the message.
void check_fields(Fields& options, const std::string& where);

/// The options with their defaults, which are the object's values.
std::vector<OptionInfo> describe_fields(Fields& options);

/// Every field's value; unset ones are left out.
OptionValues values_of(Fields& options);

/// Sets the fields that are named. Throws if a value is of another type, a name of no enumerator, or there is no such
/// option; `where` opens the message.
void assign_values(Fields& options, const OptionValues& values, const std::string& where);

/// Appends the bits of every field's value, or of the optimizer-wide ones alone: equal bits are equal options.
void append_raw_values(const Fields& options, std::vector<uint64_t>& values, bool only_shared = false);

/// The optimizer-wide fields with their values, in the list's order; one that is unset has no value.
std::vector<std::pair<const char*, std::optional<OptionValue>>> shared_values(Fields& options);

}  // namespace sgdph::detail
