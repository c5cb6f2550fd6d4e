//===- Emitter.cpp - short forms for LLVM and NVVM ops --------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;

//===----------------------------------------------------------------------===//
// Constants and arithmetic
//===----------------------------------------------------------------------===//

Value Emitter::constInt(Type type, int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, type,
                                  builder.getIntegerAttr(type, value));
}

Value Emitter::cF32(double value) {
  return LLVM::ConstantOp::create(builder, loc, f32(),
                                  builder.getF32FloatAttr(value));
}

Value Emitter::zero(Type type) {
  return LLVM::ConstantOp::create(builder, loc, type,
                                  builder.getZeroAttr(type));
}

Value Emitter::add(Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return LLVM::AddOp::create(builder, loc, a, b);
}

Value Emitter::sub(Value a, Value b) {
  return LLVM::SubOp::create(builder, loc, a, b);
}

Value Emitter::addC(Value a, int64_t c) {
  return c == 0 ? a : add(a, constInt(a.getType(), c));
}

Value Emitter::mulC(Value a, int64_t c) {
  if (c == 1)
    return a;
  if (c > 0 && llvm::isPowerOf2_64(c))
    return shlC(a, llvm::Log2_64(c));
  return LLVM::MulOp::create(builder, loc, a, constInt(a.getType(), c));
}

Value Emitter::andC(Value a, int64_t c) {
  return LLVM::AndOp::create(builder, loc, a, constInt(a.getType(), c));
}

Value Emitter::xorC(Value a, int64_t c) {
  return c == 0
             ? a
             : LLVM::XOrOp::create(builder, loc, a, constInt(a.getType(), c));
}

Value Emitter::shrC(Value a, int64_t c) {
  return c == 0
             ? a
             : LLVM::LShrOp::create(builder, loc, a, constInt(a.getType(), c));
}

Value Emitter::shlC(Value a, int64_t c) {
  return c == 0
             ? a
             : LLVM::ShlOp::create(builder, loc, a, constInt(a.getType(), c));
}

Value Emitter::lessThan(Value a, Value b) {
  return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::slt, a, b);
}

Value Emitter::equalsC(Value a, int64_t c) {
  return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, a,
                              constInt(a.getType(), c));
}

Value Emitter::both(Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return LLVM::AndOp::create(builder, loc, a, b);
}

Value Emitter::select(Value condition, Value a, Value b) {
  return LLVM::SelectOp::create(builder, loc, condition, a, b);
}

Value Emitter::clamp(Value value, int64_t limit) {
  Value low = LLVM::SMaxOp::create(builder, loc, value, c64(0));
  Value clamped = LLVM::SMinOp::create(builder, loc, low, c64(limit));
  return LLVM::TruncOp::create(builder, loc, i32(), clamped);
}

// Products and sums that meet in one expression become fused multiply-adds.
static constexpr LLVM::FastmathFlags kContract = LLVM::FastmathFlags::contract;

Value Emitter::fadd(Value a, Value b) {
  return LLVM::FAddOp::create(builder, loc, a, b, kContract);
}

Value Emitter::fsub(Value a, Value b) {
  return LLVM::FSubOp::create(builder, loc, a, b, kContract);
}

Value Emitter::fmul(Value a, Value b) {
  return LLVM::FMulOp::create(builder, loc, a, b, kContract);
}

Value Emitter::roundingError(Value value, Value rounded) {
  return LLVM::FSubOp::create(builder, loc, value, rounded);
}

Value Emitter::fma(Value a, Value b, Value c) {
  return LLVM::FMAOp::create(builder, loc, a, b, c);
}

Value Emitter::bitcast(Value value, Type type) {
  return value.getType() == type
             ? value
             : LLVM::BitcastOp::create(builder, loc, type, value).getResult();
}

SmallVector<Value> Emitter::extendPair(Value pair, Type element) {
  // By shifts: LLVM would extend the halves of a bfloat16 pair one by one.
  if (element.isBF16()) {
    Value bits = bitcast(pair, i32());
    return {bitcast(shlC(bits, 16), f32()),
            bitcast(andC(bits, 0xffff0000), f32())};
  }
  Value vector = bitcast(pair, VectorType::get(2, element));
  return {
      LLVM::FPExtOp::create(builder, loc, f32(), extractElement(vector, 0)),
      LLVM::FPExtOp::create(builder, loc, f32(), extractElement(vector, 1))};
}

Value Emitter::intrinsic(StringRef name, Type type, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(builder, loc, type,
                                       builder.getStringAttr(name), operands)
      .getResult(0);
}

Value Emitter::exp2(Value value) {
  return intrinsic("llvm.nvvm.ex2.approx.ftz.f32", f32(), value);
}

//===----------------------------------------------------------------------===//
// Vectors and threads
//===----------------------------------------------------------------------===//

Value Emitter::extractElement(Value vector, int64_t i) {
  return LLVM::ExtractElementOp::create(builder, loc, vector, c32(i));
}

Value Emitter::makeVector(ValueRange elements) {
  auto type = VectorType::get(elements.size(), elements[0].getType());
  Value vector = LLVM::PoisonOp::create(builder, loc, type);
  for (auto [i, element] : llvm::enumerate(elements))
    vector =
        LLVM::InsertElementOp::create(builder, loc, vector, element, c32(i));
  return vector;
}

SmallVector<Value> Emitter::extractAll(Value aggregate) {
  SmallVector<Value> values;
  auto type = cast<LLVM::LLVMStructType>(aggregate.getType());
  for (int64_t i = 0, e = type.getBody().size(); i < e; ++i)
    values.push_back(LLVM::ExtractValueOp::create(builder, loc, aggregate, i));
  return values;
}

void Emitter::inThreadsBelow(int64_t count, int64_t numThreads,
                             function_ref<void()> body) {
  if (count >= numThreads)
    return body();
  auto ifOp = scf::IfOp::create(builder, loc, lessThanC(threadId(), count),
                                /*withElseRegion=*/false);
  OpBuilder::InsertionGuard insertion(builder);
  builder.setInsertionPointToStart(ifOp.thenBlock());
  body();
}

Value Emitter::threadId() {
  return NVVM::ThreadIdXOp::create(builder, loc, i32());
}

Value Emitter::opaqueThreadId() {
  return inlineAsm(i32(), "mov.u32 $0, %tid.x;", "=r", {});
}

Value Emitter::threadCoordinate(ArrayRef<gdn_tile::ThreadTerm> terms,
                                int64_t numThreads) {
  Value sum;
  for (const gdn_tile::ThreadTerm &term : terms) {
    if (term.mask == 0)
      continue;
    Value part = shrC(threadId(), term.shift);
    if ((term.mask + 1) << term.shift < numThreads)
      part = andC(part, term.mask);
    sum = add(sum, mulC(part, term.scale));
  }
  return sum;
}

Value Emitter::shuffleXor(Value value, int64_t laneMask) {
  return NVVM::ShflOp::create(builder, loc, value.getType(), c32(-1), value,
                              c32(laneMask), c32(31), NVVM::ShflKind::bfly,
                              UnitAttr());
}

void Emitter::proxyFence() {
  NVVM::FenceProxyOp::create(
      builder, loc, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(builder.getContext(),
                                 NVVM::SharedSpace::shared_cta));
}

Value Emitter::shuffleFrom(Value value, Value lane) {
  return NVVM::ShflOp::create(builder, loc, value.getType(), c32(-1), value,
                              lane, c32(31), NVVM::ShflKind::idx, UnitAttr());
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value Emitter::advance(Value pointer, Value bytes) {
  if (!bytes)
    return pointer;
  return LLVM::GEPOp::create(builder, loc, pointer.getType(),
                             builder.getI8Type(), pointer, ValueRange{bytes});
}

Value Emitter::advance(Value pointer, int64_t bytes) {
  if (bytes == 0)
    return pointer;
  if (!llvm::isInt<32>(bytes))
    return advance(pointer, c64(bytes));
  return LLVM::GEPOp::create(builder, loc, pointer.getType(),
                             builder.getI8Type(), pointer,
                             LLVM::GEPArg(static_cast<int32_t>(bytes)));
}

// LLVM moves loads and stores across nvvm.griddepcontrol, which is none to it.
void Emitter::awaitLaunch() {
  inlineAsm(Type(), "griddepcontrol.wait;", "~{memory}", {});
}

Value Emitter::inlineAsm(Type result, StringRef text, StringRef constraints,
                         ValueRange operands) {
  auto op = LLVM::InlineAsmOp::create(
      builder, loc, result ? TypeRange(result) : TypeRange(), operands, text,
      constraints, /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
  return result ? op.getResult(0) : Value();
}

Value Emitter::sharedAddress(Value pointer) {
  return LLVM::PtrToIntOp::create(builder, loc, i32(), pointer);
}

void Emitter::waitForParity(Value barrier, Value parity) {
  // nvvm.mbarrier.try_wait of MLIR 22.1 returns a predicate, and a loop around
  // it would cut the program into more blocks than ptxas schedules well.
  inlineAsm(Type(),
            "{ .reg .pred done; AGAIN: mbarrier.try_wait.parity.shared::cta"
            ".b64 done, [$0], $1; @done bra.uni DONE; bra.uni AGAIN; DONE: }",
            "r,r,~{memory}", {sharedAddress(barrier), parity});
}

static StringRef getSpace(Value pointer) {
  auto type = cast<LLVM::LLVMPointerType>(pointer.getType());
  return type.getAddressSpace() == 3 ? "shared" : "global";
}

/// ".b16", ".b32", ".v2.b32" or ".v4.b32".
static std::string getWidth(int64_t words) {
  if (words <= 1)
    return words == 0 ? ".b16" : ".b32";
  return ".v" + std::to_string(words) + ".b32";
}

/// "{$3, $4}", or "$3" for one register.
static std::string getRegisters(int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(first + i);
  return count > 1 ? "{" + text + "}" : text;
}

/// The start of an inline assembly text: its guard, if `predicate` is there.
static std::string getGuard(Value predicate, int64_t operand) {
  return predicate ? "@$" + std::to_string(operand) + " " : "";
}

SmallVector<Value> Emitter::loadWords(Value pointer, int64_t words,
                                      Value predicate, bool streaming) {
  int64_t count = std::max<int64_t>(words, 1);
  Type type = words == 0 ? i16() : i32();
  if (!predicate && !streaming) {
    Type loaded = count == 1 ? type : VectorType::get(count, type);
    int64_t bytes = words == 0 ? 2 : 4 * words;
    Value value = LLVM::LoadOp::create(builder, loc, loaded, pointer, bytes);
    if (count == 1)
      return {value};
    SmallVector<Value> result;
    for (int64_t i = 0; i < count; ++i)
      result.push_back(extractElement(value, i));
    return result;
  }
  // A branch around each access would cut the kernel into hundreds of blocks;
  // LLVM's masked loads become just that. It has no loads with these hints.
  std::string constraints;
  for (int64_t i = 0; i < count; ++i)
    constraints += words == 0 ? "=h," : "=r,";
  constraints += "l";
  SmallVector<Value> operands{pointer};
  if (predicate) {
    operands.push_back(predicate);
    constraints += ",b";
    for (int64_t i = 0; i < count; ++i) {
      constraints += "," + std::to_string(i);
      operands.push_back(constInt(type, 0));
    }
  }
  std::string text =
      getGuard(predicate, count + 1) + "ld." + getSpace(pointer).str() +
      (streaming ? ".L1::no_allocate" : "") + getWidth(words) + " " +
      getRegisters(0, count) + ", [$" + std::to_string(count) + "];";
  SmallVector<Type> types(count, type);
  Type result =
      count == 1 ? type
                 : LLVM::LLVMStructType::getLiteral(type.getContext(), types);
  Value value = inlineAsm(result, text, constraints, operands);
  return count == 1 ? SmallVector<Value>{value} : extractAll(value);
}

void Emitter::storeWords(Value pointer, ValueRange words, Value predicate,
                         bool streaming) {
  int64_t count = words.size();
  bool half = words[0].getType().isInteger(16);
  if (!predicate && !streaming) {
    Value value = count == 1 ? words[0] : makeVector(words);
    LLVM::StoreOp::create(builder, loc, value, pointer, half ? 2 : 4 * count);
    return;
  }
  SmallVector<Value> operands{pointer};
  std::string constraints = "l";
  if (predicate) {
    operands.push_back(predicate);
    constraints += ",b";
  }
  int64_t first = operands.size();
  llvm::append_range(operands, words);
  for (int64_t i = 0; i < count; ++i)
    constraints += half ? ",h" : ",r";
  inlineAsm(Type(),
            getGuard(predicate, 1) + "st." + getSpace(pointer).str() +
                (streaming ? ".cs" : "") + getWidth(half ? 0 : count) +
                " [$0], " + getRegisters(first, count) + ";",
            constraints, operands);
}

Value Emitter::loadF32(Value sharedPointer) {
  return LLVM::LoadOp::create(builder, loc, f32(), sharedPointer, 4);
}

void Emitter::storeF32(Value value, Value sharedPointer) {
  LLVM::StoreOp::create(builder, loc, value, sharedPointer, 4);
}
