#include "codegen/library/link_library.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "codegen/cpu/jit.h"
#include "core/base/output.h"
#include "core/load/file.h"
#include "core/process/run.h"

namespace partita::codegen {
namespace {

namespace fs = std::filesystem;

/// The assembly of partita_image (image.h).
class ImageText {
 public:
  std::string text;

  explicit ImageText(const LinkRequest& request) {
    text = ".section .data.rel.ro,\"aw\"\n.balign 8\n.globl partita_image\n.hidden partita_image\npartita_image:\n";
    text += bytes("description", request.description) + bytes("weights", request.weights);
    text += fmt::format("  .quad code, {}\n", request.code.size());
    text += request.evaluations ? "  .quad partita_prepare_all, partita_interpret\n"
                                : "  .quad partita_prepare_library, 0\n";
    text += ".size partita_image, .-partita_image\ncode:\n";
    for (const LinkCode& code : request.code) {
      text += fmt::format("  .quad isa_{}\n", code.isa);
      graph(code.isa + "_forward", code.forward);
      graph(code.isa + "_backward", code.backward);
      graph(code.isa + "_constants", code.constants);
      data += fmt::format("isa_{0}:\n  .asciz \"{0}\"\n", code.isa);
    }
    text += graphs + lists + functions;
    text += ".section .rodata,\"a\"\n" + data + ".section .note.GNU-stack,\"\",%progbits\n";
  }

 private:
  /// A LibraryBytes.
  std::string bytes(const std::string& label, const std::string& file) {
    if (file.empty()) return "  .quad 0, 0\n";
    data += fmt::format(".balign 64\n{0}:\n  .incbin \"{1}\"\n{0}_end:\n  .byte 0\n", label, file);
    return fmt::format("  .quad {0}, {0}_end - {0}\n", label);
  }

  /// A LibraryGraph.
  void graph(const std::string& label, const LinkGraph& parts) {
    text += fmt::format("  .quad {}, {}\n", label, parts.size());
    graphs += label + ":\n";
    for (std::size_t i = 0; i < parts.size(); ++i) part(fmt::format("{}_{}", label, i), parts[i]);
  }

  /// A LibraryPartCodes.
  void part(const std::string& label, const std::vector<LinkPartCode>& codes) {
    graphs += fmt::format("  .quad {}, {}\n", label, codes.size());
    lists += label + ":\n";
    for (std::size_t i = 0; i < codes.size(); ++i) code(fmt::format("{}_{}", label, i), codes[i]);
  }

  void code(const std::string& label, const LinkPartCode& c) {
    lists += bytes(label + "_program", c.program);
    lists += fmt::format("  .quad {}_functions, {}\n", label, c.functions.size());
    functions += label + "_functions:\n";
    for (std::size_t i = 0; i < c.functions.size(); ++i) {
      functions += fmt::format("  .quad {}_name_{}, {}{}\n", label, i, c.prefix, c.functions[i]);
      data += fmt::format("{}_name_{}:\n  .asciz \"{}\"\n", label, i, c.functions[i]);
    }
  }

  std::string graphs, lists, data, functions;
};

Result<std::string> runtime_archive() {
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder : {here, here.parent_path(), here.parent_path() / "lib" / "partita"})
    if (const fs::path file = folder / "libpartita_runtime.a"; fs::exists(file, ignored)) return file.string();
  return input_error("compile.runtime", "libpartita_runtime.a is not beside the program " + here.string() +
                                            "/partita; install it there or in ../lib/partita");
}

}  // namespace

Status link_library(const LinkRequest& request) {
  TRY(const std::string runtime, runtime_archive());
  TRY(const std::string image, assemble(ImageText(request).text));
  const std::string image_file = request.folder + "/image.o", exports = request.folder + "/exports";
  TRY_DO(write_file(image_file, image));
  TRY_DO(write_file(exports, "{ global: partita_*; local: *; };\n"));
  const std::string made = request.folder + "/library.so";
  std::vector<std::string> words = {"", "-shared", "-o", made, image_file};
  words.insert(words.end(), request.objects.begin(), request.objects.end());
  for (const char* word : {"-Wl,-u,partita_load", "-Wl,-u,partita_release", "-Wl,--gc-sections", "-Wl,--as-needed",
                           "-Wl,-Bsymbolic", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,defs", "-Wl,-s"})
    words.emplace_back(word);
  words.push_back("-Wl,--version-script=" + exports);
  words.push_back(runtime);
  for (const char* library : {"-lgomp", "-ldl", "-lm", "-lpthread"}) words.emplace_back(library);
  if (request.evaluations) words.emplace_back("-llapacke");
  const char* chosen = std::getenv("CXX");
  std::vector<std::string> drivers = {"c++", "g++", "clang++"};
#ifdef PARTITA_SANITIZED_BY
  // The library needs the sanitizers of the compiler that built its runtime.
  words.insert(words.end(), {"-fsanitize=address,undefined", "-shared-libasan"});
  drivers = {PARTITA_SANITIZED_BY};
#endif
  if (chosen && *chosen) drivers = {chosen};
  for (const std::string& driver : drivers) {
    words[0] = driver;
    TRY(const ProcessEnd end, run_program(words));
    if (end.how == ProcessEnd::NotFound) continue;
    if (end.succeeded()) {
      TRY(const auto library, FileBytes::open(made));
      return write_file(request.output, library->text(), OutputKind::Program);
    }
    std::string line = end.output.substr(0, 400);
    for (char& c : line)
      if (c == '\n') c = ' ';
    return input_error("compile.linker", fmt::format("{} ended with {}: {}", driver, end.text(), line));
  }
  return input_error("compile.linker", chosen && *chosen
                                           ? fmt::format("there is no {}, which CXX names", chosen)
                                           : "there is no c++, g++ or clang++ to link with; install the package g++");
}

}  // namespace partita::codegen
