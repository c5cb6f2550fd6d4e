//===- Ptxas.cpp - NVIDIA's assembler as a check --------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Ptxas.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

using namespace llvm;

namespace {

/// A temporary file that goes away with the object.
struct ScratchFile {
  SmallString<128> path;
  FileRemover remover;

  Error create(StringRef suffix, StringRef text) {
    int descriptor;
    if (std::error_code code = sys::fs::createTemporaryFile(
            "gdn-compile", suffix, descriptor, path))
      return createStringError(code, "cannot make a temporary file: " +
                                         code.message());
    remover.setFile(path);
    raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << text;
    stream.close();
    if (std::error_code code = stream.error()) {
      stream.clear_error();
      return createStringError(code, "cannot write '" + path +
                                         "': " + code.message());
    }
    return Error::success();
  }
};

} // namespace

/// The number in front of `unit` in a line of ptxas -v; 0 if there is none.
static unsigned getNumber(StringRef line, StringRef unit) {
  size_t end = line.find(unit);
  if (end == StringRef::npos)
    return 0;
  StringRef before = line.take_front(end).rtrim();
  unsigned number = 0;
  before.take_back(before.size() - before.find_last_not_of("0123456789") - 1)
      .getAsInteger(10, number);
  return number;
}

static void summarize(StringRef log, raw_ostream &stream) {
  StringRef kernel;
  unsigned spills = 0;
  for (StringRef line : split(log, '\n')) {
    if (line.contains("Compiling entry function")) {
      kernel = line.split('\'').second.split('\'').first;
    } else if (line.contains("spill stores")) {
      spills = getNumber(line, " bytes spill stores") +
               getNumber(line, " bytes spill loads");
    } else if (line.contains("Used ")) {
      stream << kernel << ": " << getNumber(line, " registers")
             << " registers, " << spills << " bytes spilled, "
             << getNumber(line, " bytes smem") << " bytes of static shared "
             << "memory\n";
    } else if (line.contains("warning") || line.contains("(C75")) {
      stream << line << "\n";
    }
  }
}

Error gdn_compile::reportPtxas(StringRef ptx, StringRef target,
                               raw_ostream &stream) {
  ErrorOr<std::string> program = sys::findProgramByName("ptxas");
  if (!program)
    return createStringError("cannot find ptxas on the PATH; install a CUDA "
                             "toolkit or leave --ptxas out");
  ScratchFile input, output, log;
  if (Error error = joinErrors(
          joinErrors(input.create("ptx", ptx), output.create("cubin", "")),
          log.create("log", "")))
    return error;
  std::string arch = ("-arch=" + target).str();
  StringRef arguments[] = {*program, arch, "-v", input.path, "-o", output.path};
  std::optional<StringRef> redirects[] = {"", log.path.str(), log.path.str()};
  std::string message;
  int status =
      sys::ExecuteAndWait(*program, arguments, std::nullopt, redirects,
                          /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
  ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFile(log.path);
  StringRef logText = text ? (*text)->getBuffer() : "";
  if (status != 0)
    return createStringError(
        "ptxas failed: " + (message.empty() ? logText.trim().str() : message));
  summarize(logText, stream);
  return Error::success();
}
