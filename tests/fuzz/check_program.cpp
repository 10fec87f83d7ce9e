// How a random program is run, and what is compared.
#include <cmath>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "codegen/backends.h"
#include "core/aot/run_program.h"
#include "core/compare/compare.h"
#include "core/ir/print.h"
#include "core/load/session.h"
#include "tests/fuzz/programs.h"

namespace partita::fuzz {
namespace {

/// A program as a file holds it.
Artefact artefact(const Program& program) {
  Artefact a = Artefact::of_string(print(*program.graph));
  a.id = "program";
  a.kind = ArtefactKind::Graph;
  return a;
}

Result<TensorFile> run_by(const Program& program, const TensorFile& io, bool train, const CompileFn& compile) {
  RunOptions options;
  options.aot.train = train;
  options.forward = options.backward = compile;
  return run_program(artefact(program), io, options);
}

CompileFn interpreter() {
  return (*find_backend("interp"))->make({});
}

/// The same inputs with every float moved by a few units in the last place, in each memory once.
Result<TensorFile> shaken(const TensorFile& io) {
  TensorFile out = io;
  std::map<const Storage*, std::shared_ptr<Storage>> copies;
  for (auto& [key, t] : out.tensors) {
    if (key.starts_with("tangent.")) continue;
    std::shared_ptr<Storage>& copy = copies[t.storage.get()];
    if (!copy) {
      TRY(copy, Storage::allocate(t.storage->bytes()));
      std::copy_n(t.storage->data(), t.storage->bytes(), copy->data());
      const auto shake = [&]<class T>(T) {
        auto* data = reinterpret_cast<T*>(copy->data());
        for (std::size_t i = 0; i < copy->bytes() / sizeof(T); ++i)
          data[i] += data[i] * T(4) * std::numeric_limits<T>::epsilon() * T(i % 2 == 0 ? 1 : -1);
      };
      if (t.dtype == DType::Float32 || t.dtype == DType::Complex64) shake(float());
      if (t.dtype == DType::Float64) shake(double());
    }
    t.storage = copy;
  }
  return out;
}

/// Are the elements that differ ill-conditioned: does rounding of the inputs move them, too?
bool excused(const Tensor& expected, const Tensor& found, const Tensor* moved, const Tolerance& tolerance) {
  if (!moved || moved->sizes != expected.sizes || moved->dtype != expected.dtype || is_complex(expected.dtype))
    return false;
  constexpr double amplified = 256;
  for (std::int64_t i = 0; i < expected.numel(); ++i) {
    const double a = expected.item_as_double(i), b = found.item_as_double(i), c = moved->item_as_double(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(c)) {
      if (std::isfinite(a) && std::isfinite(c) && std::abs(a) < 1e10) return false;
      continue;
    }
    if (std::abs(a - b) > tolerance.absolute + tolerance.relative * std::abs(a) + amplified * std::abs(c - a))
      return false;
  }
  return true;
}

struct Runs {
  const Program& program;
  const TensorFile &expected, &found;
  const TensorFile* moved;  ///< of shaken inputs; null when it did not run

  const Tensor* after(const TensorFile& file, const std::string& key) const {
    if (const Tensor* t = file.find("input_after." + key.substr(6))) return t;
    return program.io.find(key);
  }

  std::optional<std::string> compare(const std::string& name, const Tensor* a, const Tensor* b, const Tensor* c,
                                     bool strides) const {
    if (!a && !b) return std::nullopt;
    if (!a || !b) return name + (a ? " is missing" : " is not expected");
    const Tolerance tolerance = default_tolerance(a->dtype);
    const Difference d = compare_values(name, Value(*a), Value(*b), tolerance, strides);
    if (d.ok()) return std::nullopt;
    if (!d.layout.empty()) return name + ": " + d.layout.front();
    if (excused(*a, *b, c, tolerance)) return std::nullopt;
    return fmt::format(
        "{}: {} of {} elements differ{}", name, d.wrong, d.numel,
        d.first_wrong ? fmt::format(", {} expected, {} found", d.first_wrong->expected, d.first_wrong->found) : "");
  }

  std::optional<std::string> difference() const {
    std::set<std::string> keys;
    for (const TensorFile* file : {&expected, &found})
      for (const auto& [key, tensor] : file->tensors)
        if (!key.starts_with("input_after.")) keys.insert(key);
    for (const std::string& key : keys)
      if (auto what = compare(key, expected.find(key), found.find(key), moved ? moved->find(key) : nullptr,
                              !key.starts_with("grad.")))
        return what;
    for (const auto& [key, tensor] : program.io.tensors)
      if (key.starts_with("input."))
        if (auto what = compare(key + " after the run", after(expected, key), after(found, key),
                                moved ? after(*moved, key) : nullptr, true))
          return what;
    for (const std::string& key : keys) {
      if (!key.starts_with("output.") || expected.find(key)->numel() == 0) continue;
      const auto owner = [&](const TensorFile& file) {
        const auto it = file.aliases.find(key);
        return it == file.aliases.end() ? std::string("its own memory")
                                        : fmt::format("{} from element {}", it->second.key, it->second.offset);
      };
      if (owner(expected) != owner(found))
        return fmt::format("{} lies in {}, when compiled in {}", key, owner(expected), owner(found));
    }
    return std::nullopt;
  }
};

}  // namespace

std::optional<std::string> check_program(const Program& program, bool train, std::optional<Refused>& refused) {
  const auto reference = [&](const TensorFile& io) {
    return train ? run_by(program, io, true, interpreter()) : run_as_it_is(artefact(program), io, {}, interpreter());
  };
  const Result<TensorFile> expected = reference(program.io);
  if (!expected) {
    if (expected.error().fault == Fault::Internal) return "interpreted: " + expected.error().line();
    refused = Refused{"interpreted: " + expected.error().code};
    return std::nullopt;
  }
  const Result<TensorFile> found = run_by(program, program.io, train, default_compiler().make({}));
  if (!found) {
    if (found.error().fault != Fault::Unsupported) return "compiled: " + found.error().line();
    refused = Refused{"compiled: " + found.error().code};
    return std::nullopt;
  }
  const Result<TensorFile> other = shaken(program.io);
  const Result<TensorFile> moved = other ? reference(*other) : other;
  return Runs{program, *expected, *found, moved ? &*moved : nullptr}.difference();
}

Status write_program(const Program& program, bool train, const std::string& stem) {
  std::ofstream(stem + ".py") << print(*program.graph);
  TRY_DO(write_safetensors(stem + ".io.safetensors", program.io));
  TRY(const TensorFile out, run_by(program, program.io, train, default_compiler().make({})));
  return write_safetensors(stem + ".out.safetensors", out);
}

}  // namespace partita::fuzz
