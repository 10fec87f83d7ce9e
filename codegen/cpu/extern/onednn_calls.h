#pragma once
// oneDNN, whose library is opened at its first use: viewing a graph needs none of its 40 MB, which would be a tenth of
// a cold start. Each of the functions that dnnl.hpp calls here is a name for the function found in the library; one
// that is not listed is an undefined symbol when the program is linked.
#include <oneapi/dnnl/dnnl.h>

namespace partita::codegen {

/// The address of a function of oneDNN; raises where the library is missing or has no such function.
void* onednn_function(const char* name);

}  // namespace partita::codegen

#define PARTITA_ONEDNN(name)                                                                                  \
  (*[] {                                                                                                      \
    static auto* const found = reinterpret_cast<decltype(name)*>(::partita::codegen::onednn_function(#name)); \
    return found;                                                                                             \
  }())
#define dnnl_dilated_convolution_backward_data_desc_init \
  PARTITA_ONEDNN(dnnl_dilated_convolution_backward_data_desc_init)
#define dnnl_dilated_convolution_backward_weights_desc_init \
  PARTITA_ONEDNN(dnnl_dilated_convolution_backward_weights_desc_init)
#define dnnl_dilated_convolution_forward_desc_init PARTITA_ONEDNN(dnnl_dilated_convolution_forward_desc_init)
#define dnnl_dilated_deconvolution_backward_data_desc_init \
  PARTITA_ONEDNN(dnnl_dilated_deconvolution_backward_data_desc_init)
#define dnnl_dilated_deconvolution_backward_weights_desc_init \
  PARTITA_ONEDNN(dnnl_dilated_deconvolution_backward_weights_desc_init)
#define dnnl_dilated_deconvolution_forward_desc_init PARTITA_ONEDNN(dnnl_dilated_deconvolution_forward_desc_init)
#define dnnl_engine_create PARTITA_ONEDNN(dnnl_engine_create)
#define dnnl_engine_destroy PARTITA_ONEDNN(dnnl_engine_destroy)
#define dnnl_matmul_desc_init PARTITA_ONEDNN(dnnl_matmul_desc_init)
#define dnnl_memory_create PARTITA_ONEDNN(dnnl_memory_create)
#define dnnl_memory_desc_equal PARTITA_ONEDNN(dnnl_memory_desc_equal)
#define dnnl_memory_desc_get_size PARTITA_ONEDNN(dnnl_memory_desc_get_size)
#define dnnl_memory_desc_init_by_strides PARTITA_ONEDNN(dnnl_memory_desc_init_by_strides)
#define dnnl_memory_desc_init_by_tag PARTITA_ONEDNN(dnnl_memory_desc_init_by_tag)
#define dnnl_memory_destroy PARTITA_ONEDNN(dnnl_memory_destroy)
#define dnnl_memory_get_data_handle PARTITA_ONEDNN(dnnl_memory_get_data_handle)
#define dnnl_memory_get_engine PARTITA_ONEDNN(dnnl_memory_get_engine)
#define dnnl_memory_get_memory_desc PARTITA_ONEDNN(dnnl_memory_get_memory_desc)
#define dnnl_memory_set_data_handle_v2 PARTITA_ONEDNN(dnnl_memory_set_data_handle_v2)
#define dnnl_post_ops_append_binary PARTITA_ONEDNN(dnnl_post_ops_append_binary)
#define dnnl_post_ops_append_eltwise PARTITA_ONEDNN(dnnl_post_ops_append_eltwise)
#define dnnl_post_ops_create PARTITA_ONEDNN(dnnl_post_ops_create)
#define dnnl_post_ops_destroy PARTITA_ONEDNN(dnnl_post_ops_destroy)
#define dnnl_post_ops_len PARTITA_ONEDNN(dnnl_post_ops_len)
#define dnnl_primitive_attr_create PARTITA_ONEDNN(dnnl_primitive_attr_create)
#define dnnl_primitive_attr_destroy PARTITA_ONEDNN(dnnl_primitive_attr_destroy)
#define dnnl_primitive_attr_set_scratchpad_mode PARTITA_ONEDNN(dnnl_primitive_attr_set_scratchpad_mode)
#define dnnl_primitive_attr_set_post_ops PARTITA_ONEDNN(dnnl_primitive_attr_set_post_ops)
#define dnnl_primitive_create PARTITA_ONEDNN(dnnl_primitive_create)
#define dnnl_primitive_desc_destroy PARTITA_ONEDNN(dnnl_primitive_desc_destroy)
#define dnnl_primitive_desc_iterator_create PARTITA_ONEDNN(dnnl_primitive_desc_iterator_create)
#define dnnl_primitive_desc_iterator_destroy PARTITA_ONEDNN(dnnl_primitive_desc_iterator_destroy)
#define dnnl_primitive_desc_iterator_fetch PARTITA_ONEDNN(dnnl_primitive_desc_iterator_fetch)
#define dnnl_primitive_desc_iterator_next PARTITA_ONEDNN(dnnl_primitive_desc_iterator_next)
#define dnnl_primitive_desc_query PARTITA_ONEDNN(dnnl_primitive_desc_query)
#define dnnl_primitive_desc_query_md PARTITA_ONEDNN(dnnl_primitive_desc_query_md)
#define dnnl_primitive_destroy PARTITA_ONEDNN(dnnl_primitive_destroy)
#define dnnl_primitive_execute PARTITA_ONEDNN(dnnl_primitive_execute)
#define dnnl_reorder_primitive_desc_create PARTITA_ONEDNN(dnnl_reorder_primitive_desc_create)
#define dnnl_stream_create PARTITA_ONEDNN(dnnl_stream_create)
#define dnnl_stream_destroy PARTITA_ONEDNN(dnnl_stream_destroy)

#include <oneapi/dnnl/dnnl.hpp>
