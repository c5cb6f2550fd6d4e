//===- gdn-compile.cpp - compiler driver ----------------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads a module with gdn ops and writes it at one of the levels below. All
// passes are in pipelines that gdn-opt has too.
//
//===----------------------------------------------------------------------===//

#include "HostObject.h"
#include "Output.h"
#include "Ptxas.h"
#include "Tools.h"

#include "gdn/Dialect/GdnTile/IR/GdnTile.h"
#include "gdn/InitAll.h"
#include "gdn/Target/GpuTarget.h"
#include "gdn/Target/Manifest.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"
#include <csignal>

using namespace mlir;
using namespace mlir::gdn;

namespace {

enum class Level { Linalg, Tile, Nvvm, Ptx, Object };

struct Options {
  llvm::cl::OptionCategory category{"gdn-compile options"};
  llvm::cl::opt<std::string> input{
      llvm::cl::Positional,
      llvm::cl::desc("<input file, or - for standard input>"),
      llvm::cl::init("-"), llvm::cl::cat(category)};
  // An option refers to its description.
  std::string targetHelp = "the GPU: " + listGpuTargets();
  llvm::cl::opt<std::string> target{"target", llvm::cl::desc(targetHelp),
                                    llvm::cl::init("sm_90a"),
                                    llvm::cl::cat(category)};
  llvm::cl::opt<Level> level{
      "to", llvm::cl::desc("what to write"), llvm::cl::init(Level::Ptx),
      llvm::cl::values(
          clEnumValN(Level::Linalg, "linalg", "chunkwise linalg on tensors"),
          clEnumValN(Level::Tile, "tile", "tile programs and their launches"),
          clEnumValN(Level::Nvvm, "nvvm", "kernels in the NVVM dialect"),
          clEnumValN(Level::Ptx, "ptx", "PTX; with -o also the manifest"),
          clEnumValN(Level::Object, "object",
                     "object code for this processor: _mlir_ciface_<function> "
                     "takes memref descriptors and returns nothing")),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> directory{
      "o",
      llvm::cl::desc("directory for <function>.ptx and <function>.json, "
                     "<function>.o or <function>.mlir; without it the text "
                     "goes to standard output"),
      llvm::cl::value_desc("directory"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> hostFeatures{
      "host-features",
      llvm::cl::desc("processor features to add to those found, as LLVM writes "
                     "them: -avx512bf16"),
      llvm::cl::value_desc("list"), llvm::cl::cat(category)};
  llvm::cl::opt<bool> ptxas{
      "ptxas",
      llvm::cl::desc("assemble the PTX with ptxas, and print registers, spills "
                     "and static shared memory of each kernel to standard "
                     "error"),
      llvm::cl::cat(category)};
};

LogicalResult fail(const Twine &message) {
  llvm::WithColor::error(llvm::errs(), "gdn-compile") << message << "\n";
  return failure();
}

std::string getPipeline(Level level, StringRef target) {
  std::string options = ("{target=" + target + "}").str();
  switch (level) {
  case Level::Linalg:
    return "gdn-to-linalg";
  case Level::Tile:
    return "gdn-to-tile" + options;
  case Level::Nvvm:
    return "gdn-to-tile" + options + ",gdn-tile-to-nvvm" + options;
  case Level::Ptx:
    return "gdn-to-ptx" + options;
  case Level::Object:
    return "func.func(llvm-request-c-wrappers),gdn-to-cpu";
  }
  llvm_unreachable("covered switch");
}

/// The functions that a caller sees.
SmallVector<func::FuncOp> getHostFunctions(ModuleOp module) {
  SmallVector<func::FuncOp> functions;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isDeclaration() && !function.isPrivate() &&
        !gdn_tile::getKernelAttr(function))
      functions.push_back(function);
  return functions;
}

FailureOr<std::string> getPtx(ModuleOp module) {
  auto binaries = module.getOps<gpu::BinaryOp>();
  if (binaries.empty())
    return fail("the input has no function");
  auto object = cast<gpu::ObjectAttr>((*binaries.begin()).getObjects()[0]);
  // The string ends with a zero, for the driver.
  return object.getObject().getValue().rtrim('\0').str();
}

std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  stream << "\n";
  return text;
}

LogicalResult writeObject(ModuleOp module, const Twine &name,
                          const Options &options) {
  llvm::Expected<std::string> object =
      gdn_compile::emitHostObject(module, options.hostFeatures);
  if (!object)
    return fail(llvm::toString(object.takeError()));
  llvm::Error error =
      options.directory.empty()
          ? gdn_compile::writeStdout(*object)
          : gdn_compile::writeFiles(options.directory, {{name.str(), *object}});
  return error ? fail(llvm::toString(std::move(error))) : success();
}

LogicalResult write(ModuleOp module, const Options &options) {
  SmallVector<func::FuncOp> functions = getHostFunctions(module);
  bool isPtx = options.level == Level::Ptx;
  FailureOr<std::string> text = isPtx ? getPtx(module) : print(module);
  if (failed(text))
    return failure();
  std::vector<gdn_compile::OutputFile> files;
  if (!options.directory.empty() && functions.empty())
    return fail("the input has no function to name the output after");
  for (func::FuncOp function : functions) {
    std::string name = function.getName().str();
    if (!options.directory.empty() && !llvm::all_of(name, [](char c) {
          return llvm::isPrint(c) && c != '/';
        }))
      return function.emitOpError("'")
             << name << "' cannot name a file of the output";
    if (!isPtx) {
      // The text is that of the whole module.
      if (files.empty())
        files.push_back({name + ".mlir", *text});
      continue;
    }
    FailureOr<llvm::json::Object> manifest =
        buildManifest(function, options.target);
    if (failed(manifest))
      return failure();
    files.push_back({name + ".ptx", *text});
    files.push_back(
        {name + ".json",
         llvm::formatv("{0:2}\n", llvm::json::Value(std::move(*manifest)))
             .str()});
  }
  if (options.ptxas)
    if (llvm::Error error =
            gdn_compile::reportPtxas(*text, options.target, llvm::errs()))
      return fail(llvm::toString(std::move(error)));
  llvm::Error error = options.directory.empty()
                          ? gdn_compile::writeStdout(*text)
                          : gdn_compile::writeFiles(options.directory, files);
  return error ? fail(llvm::toString(std::move(error))) : success();
}

LogicalResult run(const Options &options) {
  if (!lookUpGpuTarget(options.target))
    return fail("unknown target '" + options.target + "': expected one of " +
                listGpuTargets());
  if (options.ptxas && options.level != Level::Ptx)
    return fail("--ptxas needs --to=ptx");
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> buffer =
      openInputFile(options.input, &message);
  if (!buffer)
    return fail(message);

  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  // The op of an error may be a whole kernel.
  context.printOpOnDiagnostic(false);
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(buffer), SMLoc());
  SourceMgrDiagnosticHandler diagnostics(*sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return failure();
  std::string name = "module";
  if (options.level == Level::Object)
    for (func::FuncOp function : getHostFunctions(*module)) {
      name = function.getName().str();
      // A public function would return copies of the arguments it returns.
      function.setPrivate();
    }
  PassManager pm(&context);
  if (failed(parsePassPipeline(getPipeline(options.level, options.target), pm,
                               llvm::errs())) ||
      failed(pm.run(*module)))
    return failure();
  if (options.level == Level::Object)
    return writeObject(*module, llvm::sys::path::filename(name) + ".o",
                       options);
  return write(*module, options);
}

} // namespace

int gdn_tools::runCompile(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
#ifdef SIGXFSZ
  // A limit on the size of files is an error to report, not a reason to die
  // with temporary files left behind.
  std::signal(SIGXFSZ, SIG_IGN);
#endif
  registerAllPasses();
  Options options;
  llvm::cl::HideUnrelatedOptions(options.category);
  llvm::cl::ParseCommandLineOptions(
      argc, argv, "gdn: compiler for delta-rule recurrences\n");
  return failed(run(options)) ? EXIT_FAILURE : EXIT_SUCCESS;
}
