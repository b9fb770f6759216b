# gpu_plugin(name device [SOURCES ...]): a plugin from the shared runtime and the vendor's own sources, runtime/vendor.*
# and SOURCES
set(GPU_COMMON_DIR "${CMAKE_CURRENT_LIST_DIR}")

function(gpu_plugin name device)
  cmake_parse_arguments(arg "" "" "SOURCES" ${ARGN})
  set(sources)
  foreach(file plugin device driver errors library memory copy staging stream event pool graph ipc profile
      collective compiler precompiled prelude program launch)
    list(APPEND sources "${GPU_COMMON_DIR}/runtime/${file}.cpp")
  endforeach()
  foreach(file blas blas_plan gemm matmul)
    list(APPEND sources "${GPU_COMMON_DIR}/libraries/${file}.cpp")
  endforeach()
  tenon_add_plugin(${name}
    VERSION ${PROJECT_VERSION}
    DEVICES ${device}
    SOURCES ${sources} ${arg_SOURCES} runtime/vendor.cpp "${GPU_COMMON_DIR}/program_cache.cpp" "${GPU_COMMON_DIR}/kernel_source.cpp"
    LINK ${CMAKE_DL_LIBS})
  target_include_directories(${name} PRIVATE "${GPU_COMMON_DIR}" "${GPU_COMMON_DIR}/runtime" . runtime)
  target_compile_definitions(${name} PRIVATE
    TENON_PLUGIN_NAME="${name}" TENON_PLUGIN_VERSION="${PROJECT_VERSION}")
endfunction()
