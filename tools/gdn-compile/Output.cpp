//===- Output.cpp - files that appear whole or not at all -----------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Output.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace gdn_compile;

static Error makeError(const Twine &what, StringRef path,
                       std::error_code code) {
  return createStringError(code, "cannot " + what + " '" + path +
                                     "': " + code.message());
}

namespace {

/// The files of one run; those not renamed are removed in the end.
class Transaction {
public:
  explicit Transaction(StringRef directory) : directory(directory) {}
  ~Transaction();

  Error makeDirectory();
  Error writeTemporary(const OutputFile &file);
  Error commit();

private:
  struct Entry {
    sys::fs::TempFile temporary;
    std::string path;
  };

  StringRef directory;
  bool ownsDirectory = false;
  bool done = false;
  std::vector<Entry> entries;
  std::vector<std::string> renamed;
};

} // namespace

Transaction::~Transaction() {
  if (done)
    return;
  for (Entry &entry : entries)
    consumeError(entry.temporary.discard());
  for (const std::string &path : renamed)
    sys::fs::remove(path);
  if (ownsDirectory)
    sys::fs::remove(directory);
}

Error Transaction::makeDirectory() {
  if (sys::fs::is_directory(directory))
    return Error::success();
  // create_directories takes any file of that name for success, and what this
  // owns it removes.
  if (sys::fs::exists(directory))
    return makeError("make directory", directory,
                     std::make_error_code(std::errc::not_a_directory));
  if (std::error_code code = sys::fs::create_directories(
          directory, /*IgnoreExisting=*/true, sys::fs::all_all))
    return makeError("make directory", directory, code);
  ownsDirectory = true;
  return Error::success();
}

Error Transaction::writeTemporary(const OutputFile &file) {
  SmallString<128> path(directory);
  sys::path::append(path, file.name);
  Expected<sys::fs::TempFile> temporary =
      sys::fs::TempFile::create(path + ".%%%%%%%%.tmp", 0644);
  if (!temporary)
    return makeError("write", path, errorToErrorCode(temporary.takeError()));
  int descriptor = temporary->FD;
  entries.push_back({std::move(*temporary), path.str().str()});
  raw_fd_ostream stream(descriptor, /*shouldClose=*/false);
  stream << file.text;
  stream.flush();
  if (std::error_code code = stream.error()) {
    stream.clear_error();
    return makeError("write", path, code);
  }
  return Error::success();
}

Error Transaction::commit() {
  for (Entry &entry : entries) {
    if (Error error = entry.temporary.keep(entry.path))
      return makeError("write", entry.path, errorToErrorCode(std::move(error)));
    renamed.push_back(entry.path);
  }
  done = true;
  return Error::success();
}

Error gdn_compile::writeFiles(StringRef directory,
                              const std::vector<OutputFile> &files) {
  Transaction transaction(directory);
  if (Error error = transaction.makeDirectory())
    return error;
  for (const OutputFile &file : files)
    if (Error error = transaction.writeTemporary(file))
      return error;
  return transaction.commit();
}

Error gdn_compile::writeStdout(StringRef text) {
  raw_fd_ostream &stream = outs();
  stream << text;
  stream.flush();
  std::error_code code = stream.error();
  if (!code)
    return Error::success();
  stream.clear_error();
  return makeError("write", "standard output", code);
}
