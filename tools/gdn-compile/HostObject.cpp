//===- HostObject.cpp - object code for this processor --------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostObject.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;

static Expected<std::unique_ptr<TargetMachine>>
createHostMachine(StringRef features) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  Triple triple(sys::getProcessTriple());
  std::string message;
  const Target *target = TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return createStringError("no code for this machine: " + message);
  std::string all;
  for (const auto &feature : sys::getHostCPUFeatures())
    all += (feature.second ? "+" : "-") + feature.first().str() + ",";
  all += features;
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(
      triple, sys::getHostCPUName(), all, TargetOptions(), Reloc::PIC_,
      CodeModel::Small, CodeGenOptLevel::Default));
}

static void optimize(Module &module, TargetMachine &machine) {
  PassBuilder builder(&machine);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  // The loops are vectorized already; more only takes longer.
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O1)
      .run(module, modules);
}

Expected<std::string> gdn_compile::emitHostObject(mlir::ModuleOp module,
                                                  StringRef features) {
  // Attributes that LLVM IR has no place for.
  module.walk([](mlir::LLVM::LLVMFuncOp function) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      function.removeArgAttr(i, "gdn.name");
  });
  mlir::registerBuiltinDialectTranslation(*module.getContext());
  mlir::registerLLVMDialectTranslation(*module.getContext());
  LLVMContext context;
  std::unique_ptr<Module> llvmModule =
      mlir::translateModuleToLLVMIR(module, context);
  if (!llvmModule)
    return createStringError("the module has no form in LLVM IR");
  Expected<std::unique_ptr<TargetMachine>> machine =
      createHostMachine(features);
  if (!machine)
    return machine.takeError();
  llvmModule->setTargetTriple((*machine)->getTargetTriple());
  llvmModule->setDataLayout((*machine)->createDataLayout());
  for (Function &function : *llvmModule)
    function.addFnAttr(Attribute::NoUnwind);
  optimize(*llvmModule, **machine);
  SmallVector<char, 0> object;
  raw_svector_ostream stream(object);
  legacy::PassManager codegen;
  if ((*machine)->addPassesToEmitFile(codegen, stream, nullptr,
                                      CodeGenFileType::ObjectFile))
    return createStringError("this machine's code generator emits no objects");
  codegen.run(*llvmModule);
  return std::string(object.begin(), object.end());
}
