// rackcast schema [NAME] [--json]: the key reference, from the same fields() that read the files. Without a name it
// prints scenarios/README.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "sim/cli/file_kinds.hpp"
#include "sim/cli/verbs.hpp"

namespace rackcast {

static constexpr std::string_view introduction = R"(# scenarios

What rackcast reads, as YAML, and the key reference. This file is the output of `rackcast schema`; a test compares them.

| folder | what |
|---|---|
| `.` | scenario files: one question each; sweeps and plans. Answers: the main README and the READMEs of `sim/engine` and `sim/policy` |
| `gpus`, `racks`, `models`, `prices` | named from a scenario; every figure with source and date |
| `costs` | the parameters of a GPU's cost forms: value, interval, basis, source |
| `gallery` | more questions, one a file, with their answers |
| `jobs` | Slurm and mpirun scripts |
| `measurements`, `published`, `suites` | measured kernels, published figures, and what predictions are checked against |

How files are read:
- Every dimensioned value has a unit: `5 ms`, `64 GiB`, `900 GB/s`, `400 Gbit/s`, `2500 TFLOPS`, `0.15 USD/Mtok`, `2.31 USD/h`, `2.1 kW`, `20 /s`. `GB` is 10^9, `GiB` 2^30; a bare 0 is allowed. Token counts take `K` and `M`, 1024-based.
- Unknown and duplicate keys are errors; all problems of a file come at once as `file:line:col: key: rule`.
- `rack: gb300-nvl72` names `racks/gb300-nvl72.yaml`; `rack: ./mine.yaml` a file beside this one; `rack: {base: gb300-nvl72, gpus: 36}` changes some of its keys. A whole scenario may start from another with `base: standard`.
- `--set rack.gpus=36` on the command line does the same, in every verb that reads files; a key with dots is quoted: `models."deepseek-v4.1-flash"`.
- Editors complete and check these files with `rackcast schema NAME --json`.
)";

static std::string whole_reference() {
  std::string text(introduction);
  for (const FileKind& kind : file_kinds()) {
    const std::string_view folder = kind.folder == "." ? "" : kind.folder;
    text += fmt::format("\n## {}: {}\n\nFiles: `{}{}*.yaml`\n\n", kind.name, kind.what, folder, folder.empty() ? "" : "/");
    text += to_markdown(kind.document());
  }
  return text;
}

Action setup_schema(CLI::App& app, const Program&) {
  struct Options {
    std::string name;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  app.add_option("NAME", options->name, "kind of file: scenario, gpu, rack, model, prices, costs, ...; all without it")->type_name("");
  app.add_flag("--json", options->json, "as a JSON schema for editors (needs NAME)");
  return [options] {
    if (options->json && options->name.empty()) throw UserError("schema --json needs the kind of file, as in: rackcast schema scenario --json");
    if (options->name.empty()) fmt::print("{}", whole_reference());
    else if (const FileKind& kind = file_kind(options->name); options->json) fmt::print("{}", to_json_schema(kind.document(), std::string(kind.what)));
    else fmt::print("{}", to_markdown(kind.document()));
    return 0;
  };
}

}  // namespace rackcast
