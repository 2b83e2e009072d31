/* Lists the activations that a configuration may name. One row generates the enumeration, the spellings that
 * config.json is read with, the sentence that refuses others, the switches of all kernels, the names of `bench kernel`,
 * and the functions that random models draw. A new activation needs a row here and, under its function's name, f and f'
 * three times: scalar_<function> and scalar_<function>_derivative in simd/scalar/math_scalar.h, V(<function>) and
 * V(<function>_derivative) in simd/tmpl/math_formulas_tmpl.h, exact_<function>, exact_<function>_slope and
 * <function>_bounds in analysis/reference/exact_activation.c. A missing one fails to compile.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/* X(NAME, function, spellings...): x Phi(x); 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))); x sigmoid(1.702 x);
 * max(x, 0); x sigmoid(x); tanh(x); sigmoid(x) */
#define ACTIVATIONS(X)                                                                                                 \
    X(GELU, gelu, "gelu", "gelu_python")                                                                               \
    X(GELU_TANH, gelu_tanh, "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_accurate")                             \
    X(GELU_QUICK, gelu_quick, "quick_gelu")                                                                            \
    X(RELU, relu, "relu")                                                                                              \
    X(SILU, silu, "silu", "swish")                                                                                     \
    X(TANH, tanh, "tanh")                                                                                              \
    X(SIGMOID, sigmoid, "sigmoid")
#define ACTIVATION_NONE_SPELLED "linear"

typedef enum activation {
    ACTIVATION_NONE = 0, /* f(x) = x; it has no kernel */
#define ACTIVATION(NAME, function, ...) ACTIVATION_##NAME,
    ACTIVATIONS(ACTIVATION)
#undef ACTIVATION
        ACTIVATION_COUNT,
    ACTIVATION_EXP = ACTIVATION_COUNT /* exp(x): the kernels compute it like the others, but no model names it */
} activation;
