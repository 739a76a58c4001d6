# The kernels that read indices, with a loader that the test changes values in: index_reads.cpp.
file(GLOB reading_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/../cpu/gather/*.cpp
     ${CMAKE_CURRENT_SOURCE_DIR}/../cpu/scatter/*.cpp)
add_executable(index_reads ${CMAKE_CURRENT_SOURCE_DIR}/index_reads.cpp ${reading_sources})
target_compile_definitions(index_reads PRIVATE ANYDML_TEST_READS)
target_compile_options(index_reads PRIVATE ${options})
target_link_libraries(index_reads PRIVATE kernels)
add_test(NAME index_reads COMMAND index_reads)
