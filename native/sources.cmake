# The kernels by what compiles them: ANYDML_CPU_SOURCES and ANYDML_CUDA_SOURCES, the latter the host
# side of native/*/cuda. Every include is relative to this folder.
set(ANYDML_NATIVE ${CMAKE_CURRENT_LIST_DIR})
include_directories(${ANYDML_NATIVE})
file(GLOB ANYDML_CPU_SOURCES CONFIGURE_DEPENDS ${ANYDML_NATIVE}/*/cpu/*.cpp)
file(GLOB ANYDML_CUDA_SOURCES CONFIGURE_DEPENDS ${ANYDML_NATIVE}/*/cuda/*.cpp)
list(FILTER ANYDML_CUDA_SOURCES EXCLUDE REGEX "/native/tests/cuda/")

# The CUDA sources, and the headers that they share with the CPU, as text in a C++ file: they are
# compiled for the GPU at hand when they are first used. `anydml_cuda_sources(VARIABLE)` gives it.
# Kernels go by their names, headers by their paths, as they are included.
function(anydml_cuda_sources variable)
  file(GLOB texts CONFIGURE_DEPENDS ${ANYDML_NATIVE}/*/cuda/*.cu ${ANYDML_NATIVE}/*/cuda/*.cuh
       ${ANYDML_NATIVE}/common/*.hpp ${ANYDML_NATIVE}/common/*.def)
  set(entries "")
  foreach(path IN LISTS texts)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(RELATIVE_PATH name ${ANYDML_NATIVE} ${path})
    if(name MATCHES "[.]cu$")
      get_filename_component(name ${path} NAME)
    endif()
    file(READ ${path} text)
    string(APPEND entries "    {\"${name}\", R\"anydml(${text})anydml\"},\n")
  endforeach()
  set(ANYDML_CUDA_ENTRIES "${entries}")
  configure_file(${ANYDML_NATIVE}/runtime/cuda/sources.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/sources.cpp
                 @ONLY)
  set(${variable} ${CMAKE_CURRENT_BINARY_DIR}/sources.cpp PARENT_SCOPE)
endfunction()
