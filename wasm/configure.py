#!/usr/bin/env python3
"""Write build.ninja for the WebAssembly modules: wasm/configure.py FOLDER. `./build.sh wasm` calls it, then ninja.

FOLDER/sources holds jansson and pcre2, unpacked from Debian's source packages. Objects are shared; what differs between the three
modules is the tier: scalar has none, exact has kernels of plain SIMD128, relaxed those with relaxed_madd. A module is a library for
JavaScript (wasm/module.c); golden and checkasm are programs for the engines' system interface, WASI.

SPDX-License-Identifier: MIT
"""
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILER = "clang-19 --target=wasm32-wasi"
TIERS = ("scalar", "exact", "relaxed")

# What only other systems have; wasm/platform has what stands in its place.
REPLACED = {"thread_pool.c", "topology.c", "pages.c", "zip_reader.c", "atomic_file.c",
            "mapping_guard.c"} | {"vector_recipe.c"}  # the last: no module asks for it, and it looks at the folder above
PARTS = [f"-DHAVE_{name}=0" for name in ("AVX2", "AVX512", "AVXVNNI", "AVX512VNNI", "AVX512AMX", "NEON", "NEONDOT", "NEONI8MM")]
# Warnings are errors, but for two that only say that this is no 64-bit system or another compiler.
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-sign-compare", "-Wno-gnu-statement-expression"]
# Kernels are compiled for speed, all else for size, but for the loops that a model is opened with: those that widen weights, check tries.
FAST = {"tensor.c", "normalizer.c"}
# Rooms and files that are at work while a model, a session or a tokenizer is opened, only where a study asks, or once a text, calling others.
ONCE = {"io", "load", "config.c", "config_keys.c", "precision.c", "wrapper.c", "session.c", "session_create.c", "ablation_parse.c", "ablation_plan.c", "interventions.c",
        "patches.c", "bpe_encoder_file.c", "bpe_files.c", "model_proto.c", "post_processor.c", "tokenizer_beside.c", "tokenizer_config.c", "tokenizer_json.c",
        "tokenizer_keys.c", "vocabulary_rows.c", "answer", "tokenizer.c", "tokenizer_decode.c", "regex.c", "encoder.c", "decoder.c", "last_layer.c", "embed.c"}
FLAGS = ["-std=gnu17", "-Os", "-DNDEBUG", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections",
         "-D_GNU_SOURCE", "-DDEBERTA_UNSTABLE", "-DBUILDING_DEBERTA=1", "-DTHREADS_OPENMP=0", "-DO_PATH=O_RDONLY", "-D_WASI_EMULATED_PROCESS_CLOCKS",
         "-D_WASI_EMULATED_SIGNAL", "-D_WASI_EMULATED_MMAN", "-mbulk-memory", "-mnontrapping-fptoint", "-msign-ext", "-mmutable-globals"]
JANSSON = "dump error hashtable hashtable_seed load memory pack_unpack strbuffer strconv utf value version".split()
PCRE2 = ("auto_possess compile config context convert dfa_match error extuni find_bracket maketables match match_data newline ord2utf "
         "pattern_info script_run serialize string_utils study substitute substring tables ucd valid_utf xclass jit_compile").split()
# jansson exports a name that the library has, too; a static link would take either.
JANSSON_FLAGS = ["-Oz", "-DHAVE_CONFIG_H", "-Dutf8_encode=jansson_utf8_encode", "-Dutf8_check_first=jansson_utf8_check_first", "-w"]
PCRE2_FLAGS = ["-Oz", "-DPCRE2_CODE_UNIT_WIDTH=8", "-DHAVE_CONFIG_H", "-DSUPPORT_UNICODE", "-DSUPPORT_PCRE2_8", "-DPCRE2_STATIC", "-w"]
EXPLORER = ["program/report/explorer_head.c", "program/report/explorer_cells.c", "analysis/attention_habits.c", "analysis/attention_statistics.c",
            "analysis/attention_terms.c", "output/scope.c"]
PROGRAMS = {  # what tests/meson.build makes of them natively
    "checkasm": [*(str(path.relative_to(ROOT)) for folder in ("tests/checkasm", "check/kernels") for path in sorted((ROOT / folder).glob("*.c"))),
                 "analysis/reference/exact_activation.c", "train/state/counters.c"],
    "golden": ["check/mutation.c", *(f"tests/golden/{name}.c" for name in "golden compare_case golden_bits pytorch_ratio golden_data encode_case".split())],
    "encode_times": ["wasm/programs/encode_times.c"],
    "bad_models": [f"tests/golden/{name}.c" for name in ("bad_models", "golden_data", "encode_case")],
}
LINK = ["-Wl,--gc-sections", "-Wl,--strip-all", "-Wl,--fatal-warnings", "-Wl,-z,stack-size=1048576", "-Wl,--max-memory=4294967296"]
FILE_CALLS = ["-Wl," + ",".join(f"--wrap={call}" for call in ("open", "close", "stat", "lstat", "fstat", "fstatat", "access", "opendir", "readdir", "closedir"))]


def version():
    found = re.findall(r"^#define DEBERTA_VERSION_(?:MAJOR|MINOR|PATCH)\s+(\d+)", (ROOT / "include/deberta.h").read_text(), re.M)
    return ".".join(found)


def prepare_headers(folder):
    """Configuration of the two libraries as their own scripts would make it here."""
    include = folder / "include"
    include.mkdir(parents=True, exist_ok=True)
    jansson, pcre2 = (next((folder / "sources").glob(pattern)) for pattern in ("jansson-2*", "pcre2-10*"))
    text = (jansson / "src/jansson_config.h.in").read_text()
    for name, value in {"json_inline": "inline", "json_have_long_long": "1", "json_have_localeconv": "0", "json_have_atomic_builtins": "0",
                        "json_have_sync_builtins": "0"}.items():
        text = text.replace(f"@{name}@", value)
    (include / "jansson_config.h").write_text(text)
    (include / "jansson_private_config.h").write_text("".join(f"#define HAVE_{name}_H 1\n" for name in ("STDINT", "SYS_TYPES", "UNISTD", "SYS_TIME", "SYS_STAT"))
                                                      + "#define INITIAL_HASHTABLE_ORDER 3\n")
    shutil.copy(jansson / "src/jansson.h", include)
    shutil.copy(pcre2 / "src/pcre2.h.generic", include / "pcre2.h")
    shutil.copy(pcre2 / "src/pcre2_chartables.c.dist", include / "pcre2_chartables.c")
    (include / "pcre2").mkdir(exist_ok=True)
    shutil.copy(pcre2 / "src/config.h.generic", include / "pcre2/config.h")
    return jansson, pcre2, include


class Build:
    def __init__(self, folder):
        self.folder = folder
        self.jansson, self.pcre2, include = prepare_headers(folder)
        self.lines = ["ninja_required_version = 1.5", "rule cc", "  command = $compiler $flags -MD -MF $out.d -c $in -o $out", "  depfile = $out.d",
                      "  deps = gcc", "rule link", "  command = $compiler $flags $in $libraries -o $out",
                      f"compiler = {'ccache ' if shutil.which('ccache') else ''}{COMPILER}"]
        self.include = [f"-I{ROOT}/wasm/platform", f"-I{ROOT}", f"-I{ROOT}/include", f"-I{include}", f'-DDEBERTA_VERSION_TEXT=\\"{version()}\\"']
        self.known = set()

    def compile(self, source, flags, kind=""):
        path = ROOT / source
        target = f"objects{kind}/{str(source).replace('/', '_').strip('_')}.o"
        if target not in self.known:
            self.known.add(target)
            self.lines += [f"build {target}: cc {path}", f"  flags = {' '.join(FLAGS + flags + self.include)}"]
        return target

    def libraries(self):
        jansson = [self.compile(self.jansson / f"src/{name}.c", [*JANSSON_FLAGS, f"-I{self.jansson}/src"]) for name in JANSSON]
        pcre2 = [self.folder / "include/pcre2_chartables.c", *(self.pcre2 / f"src/pcre2_{name}.c" for name in PCRE2)]
        return jansson + [self.compile(path, [*PCRE2_FLAGS, f"-I{self.folder}/include/pcre2", f"-I{self.pcre2}/src"]) for path in pcre2]

    def core(self, tier, training=False):
        """Objects of the library with this tier; only what asks for HAVE_WASM differs. training: with its kernels."""
        simd = tier != "scalar"
        ours = [*PARTS, f"-DHAVE_WASM={int(simd)}", *WARNINGS]
        sources = [path.relative_to(ROOT) for path in sorted((ROOT / "core").rglob("*.c")) if path.name not in REPLACED]
        objects = []
        for path in sources:
            speed = ["-O3", *["-msimd128"] * simd] if path.name in FAST else ["-Oz"] if {path.parts[1], path.name} & ONCE else []
            objects.append(self.compile(path, [*ours, *speed], "-simd" if simd and path.name in {"cpu.c", "dispatch.c", *FAST} else ""))
        objects += [self.compile(f"wasm/platform/{name}.c", ours) for name in ("one_thread", "no_zip", "read_only", "fmaf")]
        kernels = [*ours, "-O3", *(["-DKERNELS_WITHOUT_TRAINING"] if not training else [])]
        kind = "-training" if training else ""
        objects.append(self.compile("simd/scalar/kernels_scalar.c", kernels, kind))
        if simd:
            relaxed = tier == "relaxed"
            objects.append(self.compile("simd/wasm/kernels_wasm.c", [*kernels, "-msimd128", f"-DWASM_RELAXED={int(relaxed)}", *["-mrelaxed-simd"] * relaxed],
                                        f"-{tier}{kind}"))
        return objects

    def link(self, target, objects, flags):
        self.lines += [f"build {target}: link {' '.join(objects)}", f"  flags = {' '.join(LINK + flags)}",
                       "  libraries = -lwasi-emulated-process-clocks -lwasi-emulated-signal -lm"]
        self.lines.append(f"default {target}")

    def program(self, name, tier, sources):
        """A program of the tests, which reads files through WASI."""
        ours = [f"-I{ROOT}/wasm/programs", *PARTS, f"-DHAVE_WASM={int(tier != 'scalar')}", "-DHAVE_SLEEF=0", *WARNINGS]
        kind = "-tests-simd" if tier != "scalar" else "-tests"
        own = [self.compile(path, ours, kind) for path in [*sources, "core/io/mapped_file.c", "wasm/programs/map_read.c"]]
        core = [path for path in self.core(tier, training=name == "checkasm") if not path.endswith("core_io_mapped_file.c.o")]
        self.link(f"tests/{name}-{tier}.wasm", core + own + self.libraries(), [])

    def module(self, tier):
        ours = [*PARTS, *WARNINGS, "-Oz", f"-DWASM_TIER=\\\"{tier}\\\""]
        own = [self.compile(path, ours, f"-{tier}") for path in ("wasm/module.c", "wasm/module_text.c", "program/report/explorer_answer.c", "wasm/platform/memory_files.c", "wasm/platform/midpoints.c")]
        own += [self.compile(path, [*PARTS, *WARNINGS, "-O2"]) for path in EXPLORER]
        self.link(f"deberta-{tier}.wasm", self.core(tier) + own + self.libraries(), ["-mexec-model=reactor", *FILE_CALLS])


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    folder = Path(sys.argv[1]).resolve()
    build = Build(folder)
    for tier in TIERS:
        build.module(tier)
        for name, sources in PROGRAMS.items():
            build.program(name, tier, sources)
    (folder / "build.ninja").write_text("\n".join(build.lines) + "\n")


if __name__ == "__main__":
    main()
