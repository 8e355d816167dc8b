#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace sgdph::lab::records {

/// The log of a run, line by line, under the run's name.
struct LoggedRun {
  std::string name;
  std::vector<nlohmann::json> lines;
};

/// A file that lies beside runs, such as cost.json or a picture.
struct NamedText {
  std::string name;
  std::string text;
};

/// Records in one text file, for keeping: a first line with what the headers of all runs share, a line for each run
/// with its epochs in columns, and one for each other file. Nothing is lost: unpacked, the logs are the same to the
/// letter.
struct PackedRecords {
  std::vector<LoggedRun> runs;
  std::vector<NamedText> files;
};

/// The text of the file. A UserError if a name is there twice.
std::string pack_records(const PackedRecords& records);

/// A UserError names file and line where the text is not what `pack_records` writes: cut off, damaged, of another
/// version.
PackedRecords unpack_records(const std::string& text, const std::string& file);

}  // namespace sgdph::lab::records
