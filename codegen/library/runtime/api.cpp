// The functions of partita_model.h.
#include <exception>

#include "codegen/library/runtime/model.h"
#include "core/base/check.h"
#include "core/base/raise.h"
#include "core/ops/record/call.h"

using namespace partita;
using namespace partita::codegen;

struct partita_model {
  std::unique_ptr<Model> model;
};
struct partita_saved {
  partita_model* model = nullptr;
  Saved saved;
};

namespace {

thread_local std::string last_error;

struct BrokenInvariant {
  std::string line;
};

int failed(int status, std::string text) noexcept {
  last_error = std::move(text);
  return status;
}

int failed(const Diagnostic& d) {
  const int status = d.fault == Fault::Input || d.fault == Fault::Unsupported ? d.exit_code() : PARTITA_INTERNAL;
  return failed(status, d.line());
}

/// Runs f, whose error becomes the thread's last error. A broken invariant is raised, so that the program that loaded
/// the library lives on.
template <class F>
int guarded(F f) noexcept {
  set_check_handler([](const std::string& line) { throw BrokenInvariant{line}; });
  try {
    try {
      const Status done = catch_raised<void>(f);
      return done ? PARTITA_OK : failed(done.error());
    } catch (const BrokenInvariant& broken) {
      return failed(PARTITA_INTERNAL, broken.line);
    } catch (const std::exception& e) {
      return failed(PARTITA_INTERNAL, e.what());
    }
  } catch (...) {
    return PARTITA_INTERNAL;
  }
}

Status given(const void* pointer, const char* what) {
  return pointer ? Status() : input_error("library.null", std::string(what) + " is NULL");
}

using Facts = const std::vector<ValueFacts>& (Model::*)() const;

size_t count_of(const partita_model* model, Facts facts) {
  return model ? (*model->model.*facts)().size() : 0;
}

int info_of(const partita_model* model, Facts facts, size_t index, partita_info* info) {
  return guarded([&]() -> Status {
    TRY_DO(given(model, "model"));
    TRY_DO(given(info, "info"));
    const std::vector<ValueFacts>& list = (*model->model.*facts)();
    if (index >= list.size())
      return input_error("library.index",
                         "there is no number " + std::to_string(index) + " among " + std::to_string(list.size()));
    *info = list[index].info;
    return {};
  });
}

Status count_is(size_t given, size_t wanted, const char* what) {
  if (given == wanted) return {};
  return input_error("library.count",
                     std::to_string(given) + " " + what + " are given, but the model has " + std::to_string(wanted));
}

Result<std::vector<Value>> inputs_of(const Model& model, const partita_tensor* inputs, size_t count) {
  const std::vector<LibraryValue>& wanted = model.description().inputs;
  TRY_DO(count_is(count, wanted.size(), "inputs"));
  if (count > 0) TRY_DO(given(inputs, "inputs"));
  std::vector<Value> values;
  for (size_t i = 0; i < count; ++i) {
    TRY(Value value, value_of(inputs[i], wanted[i], "input " + wanted[i].name));
    values.push_back(std::move(value));
  }
  return values;
}

/// Hands over all values, or none.
Status give_all(const std::vector<Value>& values, const std::vector<LibraryValue>& names, partita_tensor* out) {
  const std::vector<partita_tensor> before(out, out + values.size());
  for (size_t i = 0; i < values.size(); ++i)
    if (Status done = give(values[i], names[i].name, out[i]); !done) {
      for (size_t k = 0; k < i; ++k)
        if (out[k].owner && !before[k].data) partita_release(out + k, 1);
      return done;
    }
  return {};
}

int forward(partita_model* model, const partita_tensor* inputs, size_t input_count, partita_tensor* outputs,
            size_t output_count, partita_saved** saved) noexcept {
  return guarded([&]() -> Status {
    TRY_DO(given(model, "model"));
    Model& m = *model->model;
    TRY_DO(count_is(output_count, m.description().outputs.size(), "outputs"));
    if (output_count > 0) TRY_DO(given(outputs, "outputs"));
    TRY(const std::vector<Value> values, inputs_of(m, inputs, input_count));
    auto kept = std::make_unique<partita_saved>(partita_saved{model, {}});
    TRY(const std::vector<Value> results, m.forward(values, saved ? &kept->saved : nullptr));
    TRY_DO(give_all(results, m.description().outputs, outputs));
    if (saved) *saved = kept.release();
    return {};
  });
}

}  // namespace

#define PARTITA_API extern "C" __attribute__((visibility("default")))

PARTITA_API int partita_abi(void) {
  return PARTITA_ABI;
}
PARTITA_API const char* partita_last_error(void) {
  return last_error.c_str();
}

PARTITA_API partita_model* partita_load(const char* weights) {
  partita_model* out = nullptr;
  guarded([&]() -> Status {
    TRY(auto model, Model::load(partita_image, weights));
    out = new partita_model{std::move(model)};
    return {};
  });
  return out;
}
PARTITA_API void partita_free(partita_model* model) {
  delete model;
}
PARTITA_API const char* partita_isa(const partita_model* model) {
  return model ? model->model->isa().c_str() : "";
}
PARTITA_API int partita_set_threads(partita_model* model, int threads) {
  return guarded([&]() -> Status {
    TRY_DO(given(model, "model"));
    return model->model->set_threads(threads);
  });
}

PARTITA_API size_t partita_input_count(const partita_model* model) {
  return count_of(model, &Model::inputs);
}
PARTITA_API size_t partita_output_count(const partita_model* model) {
  return count_of(model, &Model::outputs);
}
PARTITA_API size_t partita_weight_count(const partita_model* model) {
  return count_of(model, &Model::weights);
}
PARTITA_API size_t partita_guard_count(const partita_model* model) {
  return model ? model->model->guards().size() : 0;
}
PARTITA_API size_t partita_gradient_count(const partita_model* model) {
  return count_of(model, &Model::gradients);
}
PARTITA_API int partita_input_info(const partita_model* model, size_t index, partita_info* info) {
  return info_of(model, &Model::inputs, index, info);
}
PARTITA_API int partita_output_info(const partita_model* model, size_t index, partita_info* info) {
  return info_of(model, &Model::outputs, index, info);
}
PARTITA_API int partita_weight_info(const partita_model* model, size_t index, partita_info* info) {
  return info_of(model, &Model::weights, index, info);
}
PARTITA_API int partita_gradient_info(const partita_model* model, size_t index, partita_info* info) {
  return info_of(model, &Model::gradients, index, info);
}
PARTITA_API const char* partita_guard(const partita_model* model, size_t index) {
  return index < partita_guard_count(model) ? model->model->guards()[index].c_str() : nullptr;
}
PARTITA_API int partita_weight(partita_model* model, size_t index, partita_tensor* weight) {
  return guarded([&]() -> Status {
    TRY_DO(given(model, "model"));
    TRY_DO(given(weight, "weight"));
    partita_info info;
    if (const int status = info_of(model, &Model::weights, index, &info); status != PARTITA_OK)
      return input_error("library.index", last_error);
    TRY(const Tensor t, model->model->weight(index));
    *weight = {t.data(), info.dtype, info.rank, info.sizes, info.strides, nullptr};
    return {};
  });
}

PARTITA_API int partita_run(partita_model* model, const partita_tensor* inputs, size_t input_count,
                            partita_tensor* outputs, size_t output_count) {
  return forward(model, inputs, input_count, outputs, output_count, nullptr);
}

PARTITA_API int partita_trains(const partita_model* model) {
  return model && model->model->description().trains;
}
PARTITA_API int partita_forward(partita_model* model, const partita_tensor* inputs, size_t input_count,
                                partita_tensor* outputs, size_t output_count, partita_saved** saved) {
  const int status = guarded([&]() -> Status {
    TRY_DO(given(model, "model"));
    TRY_DO(given(saved, "saved"));
    *saved = nullptr;
    if (!model->model->description().trains)
      return input_error("library.train", "the library has no backward; compile it with --train");
    return {};
  });
  return status == PARTITA_OK ? forward(model, inputs, input_count, outputs, output_count, saved) : status;
}
PARTITA_API int partita_backward(partita_model* model, partita_saved* saved, const partita_tensor* tangents,
                                 size_t output_count, partita_tensor* gradients, size_t gradient_count) {
  return guarded([&]() -> Status {
    TRY_DO(given(model, "model"));
    TRY_DO(given(saved, "saved"));
    Model& m = *model->model;
    if (saved->model != model) return input_error("library.saved", "these values were saved by another model");
    const std::vector<LibraryValue>& outputs = m.description().outputs;
    TRY_DO(count_is(output_count, outputs.size(), "tangents"));
    TRY_DO(count_is(gradient_count, m.description().gradients.size(), "gradients"));
    if (gradient_count > 0) TRY_DO(given(gradients, "gradients"));
    std::vector<Value> values(output_count);
    for (size_t i = 0; tangents && i < output_count; ++i)
      if (tangents[i].data) {
        TRY(values[i], value_of(tangents[i], outputs[i], "the tangent of output " + outputs[i].name));
      }
    TRY(const std::vector<Value> results, m.backward(std::exchange(saved->saved, {}), values));
    return give_all(results, m.description().gradients, gradients);
  });
}
PARTITA_API void partita_free_saved(partita_saved* saved) {
  delete saved;
}
