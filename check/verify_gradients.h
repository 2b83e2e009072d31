/* SPDX-License-Identifier: MIT */
#ifndef CHECK_VERIFY_GRADIENTS_H
#define CHECK_VERIFY_GRADIENTS_H

#include "check/backward_faults.h"
#include "check/verify.h"

/* Gradients of every tensor of random models: bit for bit those of the scalar tier, and along a random direction the
 * central difference of the float64 loss. With a fault, of the best tier alone, and no further than where it shows. */
deberta_status verify_gradients(verify_report *report, const verify_options *options, size_t configurations,
                                const backward_fault *fault, deberta_error *err);

#endif
