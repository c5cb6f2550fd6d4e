# Static linking of the tools, for the wheel: they need libc and libm only.

# Debian exports every MLIR archive with a dependency on libLLVM.so, some on
# libMLIR.so: two copies of LLVM in one program end it at once.
get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(lib IN LISTS imported)
  get_target_property(type ${lib} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    get_target_property(deps ${lib} INTERFACE_LINK_LIBRARIES)
    if(deps)
      list(REMOVE_ITEM deps LLVM MLIR "$<LINK_ONLY:LLVM>")
      set_target_properties(${lib} PROPERTIES
        INTERFACE_LINK_LIBRARIES "${deps}")
    endif()
  endif()
endforeach()
# The export names z3, libxml2 and the shared zlib and zstd.
find_library(ZLIB_A NAMES libz.a REQUIRED)
find_library(ZSTD_A NAMES libzstd.a REQUIRED)
set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES
  "rt;dl;m;${ZLIB_A};${ZSTD_A};LLVMDemangle")

function(gdn_link_static name)
  get_property(dialects GLOBAL PROPERTY MLIR_DIALECT_LIBS)
  get_property(conversions GLOBAL PROPERTY MLIR_CONVERSION_LIBS)
  get_property(extensions GLOBAL PROPERTY MLIR_EXTENSION_LIBS)
  get_property(translations GLOBAL PROPERTY MLIR_TRANSLATION_LIBS)
  llvm_map_components_to_libnames(llvm_libs NVPTXCodeGen NVPTXDesc NVPTXInfo
    X86CodeGen X86Desc X86Info Passes Core Support TargetParser)
  target_link_libraries(${name} PRIVATE ${ARGN} MLIROptLib
    MLIRRegisterAllDialects MLIRRegisterAllExtensions MLIRRegisterAllPasses
    ${dialects} ${conversions} ${extensions} ${translations} ${llvm_libs})
  target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc
    -Wl,--gc-sections,--icf=all,-s,-O2 -fuse-ld=lld-22)
endfunction()
