"""lit configuration: one test per .mlir file, with a time and memory limit."""

import os
import shutil
import sys

import lit.formats

try:
    import psutil  # noqa: F401  lit needs it to kill a test that hangs
except ImportError:
    psutil = None

config.name = "gdn"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.excludes = ["lib"]

config.environment["PATH"] = os.pathsep.join(
    [config.gdn_tools_dir, config.llvm_tools_dir, os.environ["PATH"]]
)
config.environment["ASAN_OPTIONS"] = "detect_leaks=0"

# A pattern that loops for ever eats all memory before anyone notices.
config.pipefail = True
if psutil:
    lit_config.maxIndividualTestTime = 300
elif os.environ.get("CI"):
    lit_config.fatal("the Python package psutil is missing; tools/setup.sh installs it")

config.substitutions.append(("%python", sys.executable))
llvm_lib = os.path.join(os.path.dirname(config.llvm_tools_dir), "lib")
config.substitutions.append(
    (
        "%runner_libs",
        ",".join(
            os.path.join(llvm_lib, name)
            for name in ("libmlir_runner_utils.so", "libmlir_c_runner_utils.so")
        ),
    )
)
plugin = os.path.join(config.gdn_lib_dir, "gdn-plugin.so")
config.substitutions.append(
    ("%load_gdn", f"--load-dialect-plugin={plugin} --load-pass-plugin={plugin}")
)
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(
    ("%gdn-compile", os.path.join(config.gdn_tools_dir, "gdn-compile"))
)
# ptxas is optional for users, required where CI says so.
if shutil.which("ptxas", path=config.environment["PATH"]):
    config.available_features.add("ptxas")
elif os.environ.get("CI"):
    lit_config.fatal("ptxas is missing; tools/setup.sh installs it")
