// SPDX-License-Identifier: Apache-2.0
// The converters that lines of the table name as `native`, by family.
#pragma once

#include "conversion.hpp"

namespace tenon::onnx {

// X(name): Values convert_<name>(Conversion&), in convert/<family>.cpp.
// clang-format off
#define TENON_ONNX_CONVERTERS(X) \
  /* variadic.cpp */ \
  X(maximum) X(minimum) X(sum) X(mean) \
  /* constant.cpp */ \
  X(constant) X(constant_of_shape) X(range) \
  /* cast.cpp */ \
  X(cast) X(cast_like) \
  /* shape.cpp */ \
  X(reshape) X(pad) X(split) X(center_crop_pad) \
  /* data_dependent.cpp */ \
  X(nonzero) X(compress) X(unique) X(non_max_suppression) \
  /* indexing.cpp */ \
  X(gather_nd) X(scatter_nd) X(scatter_elements) X(one_hot) X(tensor_scatter) \
  /* convolution.cpp */ \
  X(conv) X(conv_transpose) \
  /* pooling.cpp */ \
  X(max_pool) X(average_pool) X(lp_pool) X(max_unpool) \
  /* resize.cpp */ \
  X(resize) X(upsample) \
  /* recurrent.cpp */ \
  X(lstm) X(gru) X(rnn) \
  /* attention.cpp */ \
  X(attention) X(rotary_embedding) \
  /* quantization.cpp */ \
  X(quantize_linear) X(dequantize_linear) X(qlinear_conv) X(qlinear_matmul) X(matmul_integer) \
  X(conv_integer) \
  /* recurrence.cpp */ \
  X(linear_attention) X(causal_conv_with_state) \
  /* loss.cpp */ \
  X(negative_log_likelihood_loss) X(softmax_cross_entropy_loss) \
  /* signal.cpp */ \
  X(window) X(mel_weight_matrix) X(dft) X(stft) \
  /* control.cpp */ \
  X(if) X(loop) X(scan) X(sequence_map) \
  /* sequence.cpp */ \
  X(sequence_construct) X(sequence_empty) X(sequence_at) X(sequence_insert) X(sequence_erase) \
  X(sequence_length) X(split_to_sequence) X(concat_from_sequence) X(optional) \
  X(optional_get_element) X(optional_has_element) \
  /* text.cpp */ \
  X(string_concat) X(string_normalizer) X(string_split) X(regex_full_match) \
  /* ngrams.cpp */ \
  X(tf_idf_vectorizer) \
  /* training.cpp */ \
  X(adagrad) X(adam) X(momentum) \
  /* gradient.cpp */ \
  X(gradient) \
  /* flex_attention.cpp */ \
  X(flex_attention) \
  /* ../ml/linear.cpp */ \
  X(linear_regressor) X(linear_classifier) X(scaler) X(normalizer) X(imputer) \
  X(feature_vectorizer) \
  /* ../ml/categories.cpp */ \
  X(label_encoder) X(category_mapper) X(one_hot_encoder) \
  /* ../ml/trees.cpp */ \
  X(tree_ensemble) X(tree_ensemble_regressor) X(tree_ensemble_classifier) \
  /* ../ml/support_vectors.cpp */ \
  X(svm_regressor) X(svm_classifier)
// clang-format on

#define TENON_ONNX_DECLARE(name) Values convert_##name(Conversion& c);
TENON_ONNX_CONVERTERS(TENON_ONNX_DECLARE)
#undef TENON_ONNX_DECLARE

}  // namespace tenon::onnx
