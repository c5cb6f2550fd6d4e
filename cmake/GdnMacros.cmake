# A static library of the project; every source may use every generated header.
function(add_gdn_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  add_dependencies(${name} gdn-headers)
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_precompile_headers(${name} REUSE_FROM gdn-precompiled)
  set_property(GLOBAL APPEND PROPERTY GDN_LIBS ${name})
endfunction()

# A command-line tool linked against all project libraries and libMLIR.so.
function(add_gdn_tool name)
  add_executable(${name} ${ARGN})
  add_dependencies(${name} gdn-headers)
  get_property(libs GLOBAL PROPERTY GDN_LIBS)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tools)
  if(GDN_STATIC)
    gdn_link_static(${name} ${libs})
  else()
    target_link_libraries(${name} PRIVATE ${libs} MLIR LLVM)
  endif()
endfunction()

# Runs mlir-tblgen on the given .td and registers the output as a header that
# all libraries wait for. Usage: gdn_tablegen(<td> <out> <options...>)...
macro(gdn_tablegen td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(_args ${ARGN})
  list(LENGTH _args _n)
  math(EXPR _last "${_n} - 1")
  foreach(_i RANGE 0 ${_last} 2)
    math(EXPR _j "${_i} + 1")
    list(GET _args ${_i} _out)
    list(GET _args ${_j} _flags)
    string(REPLACE "," ";" _flags "${_flags}")
    mlir_tablegen(${_out} ${_flags} EXTRA_INCLUDES ${CMAKE_SOURCE_DIR}/include)
  endforeach()
  string(MAKE_C_IDENTIFIER "gdn_tblgen_${CMAKE_CURRENT_SOURCE_DIR}_${td}" _target)
  add_public_tablegen_target(${_target})
  add_dependencies(gdn-headers ${_target})
endmacro()

# Markdown documentation of a .td, as build/docs/<name>.md; part of `gdn-doc`.
function(gdn_documentation td name)
  set(out ${CMAKE_BINARY_DIR}/docs/${name}.md)
  set(deps ${CMAKE_CURRENT_BINARY_DIR}/${name}.d)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/docs
    COMMAND ${MLIR_TABLEGEN_EXE} ${ARGN} -I ${CMAKE_SOURCE_DIR}/include
      -I ${MLIR_INCLUDE_DIRS} ${CMAKE_CURRENT_SOURCE_DIR}/${td} -o ${out}
      -d ${deps}
    DEPFILE ${deps}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${td} ${MLIR_TABLEGEN_EXE}
    COMMENT "Documentation: docs/${name}.md"
    VERBATIM)
  add_custom_target(gdn-doc-${name} DEPENDS ${out})
  add_dependencies(gdn-doc gdn-doc-${name})
endfunction()
