#pragma once
#include "core/ops/record.h"

namespace partita {

// The parts of the pointwise family that have files of their own.
void add_unary(OpTable& t);
void add_activations(OpTable& t);
void add_pointwise_composites(OpTable& t);  ///< other names, and operators made of two or three
void add_numeric_composites(OpTable& t);    ///< isclose, trapezoid, nanmean, float_power
void add_foreach(OpTable& t);               ///< lists of tensors
void add_special(OpTable& t);               ///< gamma, zeta, error and Bessel functions
void add_polynomials(OpTable& t);           ///< orthogonal polynomials
void add_number_parts(OpTable& t);          ///< complex from parts, angle, frexp, gcd, lcm

}  // namespace partita
