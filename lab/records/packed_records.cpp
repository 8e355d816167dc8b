#include "records/packed_records.h"

#include "base/error.h"
#include "base/json.h"

#include <algorithm>
#include <optional>
#include <set>

namespace sgdph::lab::records {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kFormatKey = "sgdph_records";
constexpr int kFormatVersion = 1;
constexpr size_t kMostEpochs = 1000000;  // of a run in columns

/// As text, since 1 and 1.0 are equal as numbers and must not become one another.
bool same_to_the_letter(const json& a, const json& b) {
  return a.dump() == b.dump();
}

bool all_alike(const std::vector<json>& values) {
  return std::all_of(
      values.begin(), values.end(), [&](const auto& value) { return same_to_the_letter(value, values.front()); });
}

bool have_the_same_keys(const std::vector<json>& values) {
  const auto keys = [](const json& object) {
    std::vector<std::string> all;
    for (const auto& [key, value] : object.items()) all.push_back(key);
    return all;
  };
  return std::all_of(values.begin(), values.end(), [&](const auto& value) {
    return value.is_object() && keys(value) == keys(values.front());
  });
}

/// Objects with the same keys become one of columns; a plain value that all have stands once; else it is a list.
json to_columns(const std::vector<json>& values) {
  if (values.empty()) return json::array();
  if (have_the_same_keys(values)) {
    auto columns = json::object();
    for (const auto& [key, first] : values.front().items()) {
      std::vector<json> column;
      column.reserve(values.size());
      for (const auto& value : values) column.push_back(value.at(key));
      columns[key] = to_columns(column);
    }
    return columns;
  }
  if (values.front().is_primitive() && all_alike(values)) return values.front();
  return values;
}

/// Whether a column lists its figures, which must be as many as there are epochs: a number alone must not ask for
/// memory.
bool lists_epochs(const json& columns, size_t count) {
  if (columns.is_array() && columns.size() != count) {
    fail("a column of {} figures for {} epochs", columns.size(), count);
  }
  bool listed = columns.is_array();
  if (columns.is_object()) {
    for (const auto& column : columns) listed = lists_epochs(column, count) || listed;
  }
  return listed;
}

std::vector<json> from_columns(const json& columns, size_t count) {
  if (columns.is_object()) {
    std::vector<json> values(count, json::object());
    for (const auto& [key, column] : columns.items()) {
      auto entries = from_columns(column, count);
      for (size_t i = 0; i < count; ++i) values[i][key] = std::move(entries[i]);
    }
    return values;
  }
  if (!columns.is_array()) return std::vector<json>(count, columns);
  return columns.get<std::vector<json>>();
}

/// A log in parts: header without its settings, settings, epochs, end (null: there is none yet).
struct LogParts {  // NOLINT(bugprone-exception-escape): the library's json moves without throwing
  json header, settings;
  std::vector<json> epochs;
  json end;
};

json without_type(json line) {
  line.erase("type");
  return line;
}

json with_type(json line, const char* type) {
  line["type"] = type;
  return line;
}

/// Nothing if the lines are not in the order that a run writes them.
std::optional<LogParts> parts_of(const std::vector<json>& lines) {
  LogParts parts;
  if (lines.empty() || lines.size() > kMostEpochs) return std::nullopt;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto type = lines[i].is_object() ? lines[i].value("type", json()) : json();
    if (i == 0 && type == "header") {
      parts.header = without_type(lines[i]);
    } else if (i > 0 && type == "epoch" && parts.end.is_null()) {
      parts.epochs.push_back(without_type(lines[i]));
    } else if (i > 0 && type == "end" && parts.end.is_null()) {
      parts.end = without_type(lines[i]);
    } else {
      return std::nullopt;
    }
  }
  parts.settings = parts.header.value("settings", json());
  if (!parts.settings.is_object()) return std::nullopt;
  parts.header.erase("settings");
  if (parts.epochs.size() > 1 && all_alike(parts.epochs)) return std::nullopt;  // no column would list them
  return parts;
}

std::vector<json> lines_of(const LogParts& parts) {
  auto header = with_type(parts.header, "header");
  header["settings"] = parts.settings;
  std::vector<json> lines{std::move(header)};
  for (const auto& epoch : parts.epochs) lines.push_back(with_type(epoch, "epoch"));
  if (!parts.end.is_null()) lines.push_back(with_type(parts.end, "end"));
  return lines;
}

/// Keeps of `shared` what `object` has as well.
void keep_common(json& shared, const json& object) {
  for (auto entry = shared.begin(); entry != shared.end();) {
    const auto found = object.find(entry.key());
    const bool common = found != object.end() && same_to_the_letter(*found, *entry);
    entry = common ? std::next(entry) : shared.erase(entry);
  }
}

json without(json object, const json& shared) {
  for (const auto& [key, value] : shared.items()) object.erase(key);
  return object;
}

json with(json object, const json& shared) {
  object.update(shared);
  return object;
}

/// What the headers of all runs have in common.
struct Shared {
  json header = json::object();
  json settings = json::object();
};

ordered_json packed_run(const std::string& name, const LogParts& parts, const Shared& shared) {
  ordered_json line{{"run", name}};
  line["header"] = without(parts.header, shared.header);
  line["settings"] = without(parts.settings, shared.settings);
  line["epochs"] = parts.epochs.size();
  if (!parts.epochs.empty()) line["columns"] = to_columns(parts.epochs);
  if (!parts.end.is_null()) line["end"] = parts.end;
  return line;
}

LoggedRun unpacked_run(const json& line, const Shared& shared) {
  LoggedRun run{line.at("run").get<std::string>(), {}};
  if (line.contains("log")) {
    run.lines = line.at("log").get<std::vector<json>>();
    return run;
  }
  LogParts parts;
  parts.header = with(line.at("header"), shared.header);
  parts.settings = with(line.at("settings"), shared.settings);
  const auto epochs = line.at("epochs").get<size_t>();
  if (epochs > kMostEpochs) fail("{} epochs", epochs);
  if (epochs > 0) {
    const auto& columns = line.at("columns");
    if (!lists_epochs(columns, epochs) && epochs > 1) fail("no column lists the {} epochs", epochs);
    parts.epochs = from_columns(columns, epochs);
  }
  parts.end = line.value("end", json());
  run.lines = lines_of(parts);
  return run;
}

/// What is no UTF-8 is replaced: names of files may be anything.
std::string line_text(const ordered_json& line) {
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

/// JSON stays readable; its keys keep their order.
ordered_json packed_file(const NamedText& file) {
  ordered_json line{{"file", file.name}};
  auto content = ordered_json::parse(file.text, nullptr, false);
  const bool is_json = !content.is_discarded();
  line[is_json ? "json" : "text"] = is_json ? std::move(content) : ordered_json(file.text);
  return line;
}

NamedText unpacked_file(const ordered_json& line) {
  const auto name = line.at("file").get<std::string>();
  if (line.contains("json")) return {name, line.at("json").dump()};
  return {name, line.at("text").get<std::string>()};
}

/// The lines of a packed file one after another, each known by file and number in messages.
class LineReader {
 public:
  LineReader(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  bool at_end() const { return from_ == text_.size(); }
  std::string where() const { return fmt::format("{}:{}", file_, number_); }

  ordered_json next() {
    ++number_;
    const auto end = text_.find('\n', from_);
    if (end == std::string::npos) fail("{}: cut off in the middle of the line", where());
    check_json(std::string_view(text_).substr(from_, end - from_), file_, number_);
    const auto first = text_.begin() + static_cast<std::ptrdiff_t>(from_);
    auto line = ordered_json::parse(first, text_.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (!line.is_object()) fail("{}: damaged: not a line of packed records", where());
    from_ = end + 1;
    return line;
  }

 private:
  const std::string& text_;
  const std::string& file_;
  size_t from_ = 0;
  size_t number_ = 0;
};

/// The first line: which format this is, how many lines follow, what all runs share.
size_t read_beginning(LineReader& reader, Shared& shared) {
  const json line = reader.next();
  if (!line.contains(kFormatKey)) {
    fail("{}: not records packed by 'sgdph report --pack'; of a run give the folder", reader.where());
  }
  if (line.at(kFormatKey) != kFormatVersion) {
    fail(
        "{}: packed records of version {}; this program reads version {}", reader.where(), line.at(kFormatKey).dump(),
        kFormatVersion);
  }
  shared.header = line.at("header");
  shared.settings = line.at("settings");
  return line.at("lines").get<size_t>();
}

}  // namespace

std::string pack_records(const PackedRecords& records) {
  std::set<std::string> names;
  const auto take_name = [&](const std::string& name) {
    if (!names.insert(name).second) fail("two records are called {}; give the folder above both", name);
  };
  Shared shared;
  bool first = true;
  std::vector<std::optional<LogParts>> logs;
  for (const auto& run : records.runs) {
    take_name(run.name);
    logs.push_back(parts_of(run.lines));
    if (!logs.back()) continue;
    if (std::exchange(first, false)) shared = {logs.back()->header, logs.back()->settings};
    keep_common(shared.header, logs.back()->header);
    keep_common(shared.settings, logs.back()->settings);
  }
  ordered_json beginning{{kFormatKey, kFormatVersion}, {"lines", records.runs.size() + records.files.size()}};
  beginning["header"] = shared.header;
  beginning["settings"] = shared.settings;
  auto text = line_text(beginning);
  for (size_t i = 0; i < logs.size(); ++i) {
    const auto& run = records.runs[i];
    const auto line =
        logs[i] ? packed_run(run.name, *logs[i], shared) : ordered_json{{"run", run.name}, {"log", run.lines}};
    text += line_text(line);
  }
  for (const auto& file : records.files) {
    take_name(file.name);
    text += line_text(packed_file(file));
  }
  return text;
}

PackedRecords unpack_records(const std::string& text, const std::string& file) {
  LineReader reader(text, file);
  PackedRecords records;
  try {
    Shared shared;
    const auto lines = read_beginning(reader, shared);
    std::set<std::string> names;
    for (size_t i = 0; i < lines; ++i) {
      if (reader.at_end()) fail("{}: the last line of {}; the rest is missing", reader.where(), lines + 1);
      const auto line = reader.next();
      const bool is_run = line.contains("run");
      std::string name;
      try {
        if (is_run) records.runs.push_back(unpacked_run(line, shared));
        if (!is_run) records.files.push_back(unpacked_file(line));
        name = is_run ? records.runs.back().name : records.files.back().name;
      } catch (const UserError& error) {
        fail("{}: damaged: {}", reader.where(), error.what());
      }
      if (!names.insert(name).second) fail("{}: {} is there twice", reader.where(), name);
    }
    if (!reader.at_end()) fail("{}: more than the {} lines that the first one tells of", reader.where(), lines + 1);
  } catch (const json::exception& error) {
    fail("{}: damaged: {}", reader.where(), error.what());
  }
  return records;
}

}  // namespace sgdph::lab::records
