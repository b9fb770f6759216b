# gpu_plugin(name device [SOURCES ...]): a plugin from the shared runtime and the vendor's own sources, runtime/vendor.*
# and SOURCES
set(GPU_COMMON_DIR "${CMAKE_CURRENT_LIST_DIR}")

# The sources in kernels/*.cu travel in the plugin as text and are compiled when they are first needed.
function(embed_kernels out)
  file(GLOB texts CONFIGURE_DEPENDS "${GPU_COMMON_DIR}/kernels/*.cu" kernels/*.cu)
  set(embedded "// Generated from kernels/*.cu. Do not edit.\nnamespace gpu::kernels::text {\n")
  foreach(file ${texts})
    get_filename_component(name "${file}" NAME_WE)
    file(READ "${file}" text)
    string(APPEND embedded "extern const char ${name}[];\nconst char ${name}[] = R\"kernel(${text})kernel\";\n")
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${texts})
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/texts.cpp" CONTENT "${embedded}} // namespace\n" @ONLY)
  set(${out} "${CMAKE_CURRENT_BINARY_DIR}/texts.cpp" PARENT_SCOPE)
endfunction()

function(gpu_plugin name device)
  cmake_parse_arguments(arg "" "" "SOURCES" ${ARGN})
  embed_kernels(sources)
  foreach(room runtime libraries blas fft solver dnn)
    file(GLOB files CONFIGURE_DEPENDS "${GPU_COMMON_DIR}/${room}/*.cpp")
    list(APPEND sources ${files})
  endforeach()
  tenon_add_plugin(${name}
    VERSION ${PROJECT_VERSION}
    DEVICES ${device}
    SOURCES ${sources} ${arg_SOURCES} runtime/vendor.cpp "${GPU_COMMON_DIR}/program_cache.cpp" "${GPU_COMMON_DIR}/kernel_source.cpp"
    LINK ${CMAKE_DL_LIBS})
  if(COMMAND tenon_compile_in_batches)  # a build of the plugin alone has it not
    tenon_compile_in_batches(${name})
  endif()
  target_include_directories(${name} PRIVATE "${GPU_COMMON_DIR}" .)
  target_compile_definitions(${name} PRIVATE
    TENON_PLUGIN_NAME="${name}" TENON_PLUGIN_VERSION="${PROJECT_VERSION}")
endfunction()
