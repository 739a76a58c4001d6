# The CUDA sources, and the headers that they share with the CPU, as text in a C++ file: they are
# compiled for the GPU at hand when they are first used. `anydml_cuda_sources(VARIABLE)` gives it.
set(ANYDML_CUDA_FOLDER ${CMAKE_CURRENT_LIST_DIR})
function(anydml_cuda_sources variable)
  file(GLOB texts CONFIGURE_DEPENDS ${ANYDML_CUDA_FOLDER}/kernels/*.cu
       ${ANYDML_CUDA_FOLDER}/kernels/*.cuh ${ANYDML_CUDA_FOLDER}/../common/*.hpp
       ${ANYDML_CUDA_FOLDER}/../common/*.def)
  set(entries "")
  foreach(path IN LISTS texts)
    get_filename_component(path ${path} ABSOLUTE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    get_filename_component(name ${path} NAME)
    file(READ ${path} text)
    string(APPEND entries "    {\"${name}\", R\"anydml(${text})anydml\"},\n")
  endforeach()
  set(ANYDML_CUDA_ENTRIES "${entries}")
  configure_file(${ANYDML_CUDA_FOLDER}/host/sources.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/sources.cpp
                 @ONLY)
  set(${variable} ${CMAKE_CURRENT_BINARY_DIR}/sources.cpp PARENT_SCOPE)
endfunction()
