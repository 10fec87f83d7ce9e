#pragma once
#include "core/ops/record/record.h"

namespace partita {

/// Metas and values of products of matrices and vectors: fake_NAME and eval_NAME are those of aten.NAME.
Meta fake_mm(FakeCall& c);
Meta fake_int_mm(FakeCall& c);
Value eval_mm(EvalCall& c);
Value eval_int_mm(EvalCall& c);
Meta fake_bmm(FakeCall& c);
Value eval_bmm(EvalCall& c);
Meta fake_addmm(FakeCall& c);
Value eval_addmm(EvalCall& c);
Meta fake_baddbmm(FakeCall& c);
Value eval_baddbmm(EvalCall& c);
Meta fake_addbmm(FakeCall& c);
Value eval_addbmm(EvalCall& c);
Meta fake_mv(FakeCall& c);
Value eval_mv(EvalCall& c);
Meta fake_addmv(FakeCall& c);
Value eval_addmv(EvalCall& c);
Meta fake_addr(FakeCall& c);
Value eval_addr(EvalCall& c);
Meta fake_dot(FakeCall& c);
Value eval_dot(EvalCall& c);
Meta fake_vdot(FakeCall& c);
Value eval_vdot(EvalCall& c);

}  // namespace partita
