"""Makes the wheels that are published: topolane for each processor, topolane-nova cut out of it, and one for each wing.

    python tools/wheels.py dist x86_64 aarch64 --profile release

zig is the C compiler and links against the oldest glibc of LINUX, so one machine makes the wheels of all
processors. Needs maturin, ziglang, click-man, wheel, and Rust's standard library for each processor.
TOPOLANE_COMMIT and SOURCE_DATE_EPOCH default to the last commit. The same sources give the same bytes in any
directory.
"""

import argparse
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

import nova_wheel

ROOT = pathlib.Path(__file__).parents[1]
LINUX = "manylinux_2_28"
WINGS = ("sites", "gang", "studies")
PYTHON = (sys.executable, "-m")


def main() -> None:
    """Writes the wheels and prints their paths."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("processors", nargs="*", default=[platform.machine()])
    parser.add_argument("--profile", default="release")
    given = parser.parse_args()
    for processor in given.processors:
        check_library(processor)
    environment = environment_of(given.profile)
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        wheels = [compiled(processor, given.profile, environment, folder) for processor in given.processors]
        for wheel in wheels:
            nova_wheel.main(wheel)
        wings = [wing(name, environment, folder) for name in WINGS]
        add_command_files(wheels, wings, environment, folder)
        given.directory.mkdir(parents=True, exist_ok=True)
        for wheel in sorted(folder.glob("*.whl")):
            print(shutil.copy(wheel, given.directory))


def check_library(processor: str) -> None:
    """Ends with exit code 3 if Rust cannot compile for the processor."""
    asked = ["rustc", "--print", "target-libdir", "--target", target_of(processor)]
    done = subprocess.run(asked, capture_output=True, text=True)
    if done.returncode or not pathlib.Path(done.stdout.strip()).is_dir():
        print(
            f"Rust's standard library for {processor} is missing: 'rustup target add {target_of(processor)}'",
            file=sys.stderr,
        )
        sys.exit(3)


def target_of(processor: str) -> str:
    """Rust's name for the target with this processor."""
    return f"{processor}-unknown-linux-gnu"


def environment_of(profile: str) -> dict[str, str]:
    """The environment for the compilers: facts that the engine reports about its build, and no paths of this
    machine in the output.
    """
    cargo = os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo")
    names = {ROOT: "topolane", pathlib.Path(cargo): "cargo"}
    return os.environ | {
        "TOPOLANE_COMMIT": os.environ.get("TOPOLANE_COMMIT") or last_commit("%H"),
        "TOPOLANE_PROFILE": profile,
        "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH") or last_commit("%ct"),
        "RUSTFLAGS": " ".join(f"--remap-path-prefix={path}={name}" for path, name in names.items()),
        "CFLAGS": " ".join(f"-ffile-prefix-map={path}={name}" for path, name in names.items()),
        "CARGO_TARGET_DIR": str(ROOT / "target"),
        # maturin looks for zig here.
        "PATH": os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]),
    }


def last_commit(form: str) -> str:
    """A fact of the commit that is checked out."""
    words = ["git", "log", "-1", f"--format={form}"]
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def compiled(processor: str, profile: str, environment: dict[str, str], folder: pathlib.Path) -> pathlib.Path:
    """Builds the wheel of one processor with maturin."""
    words = ["build", "--zig", "--locked", "--profile", profile, "--compatibility", LINUX]
    subprocess.run(
        [*PYTHON, "maturin", *words, "--target", target_of(processor), "--out", folder],
        cwd=ROOT,
        env=environment,
        check=True,
    )
    return next(folder.glob(f"topolane-*_{processor}.whl"))


def add_command_files(
    wheels: list[pathlib.Path], wings: list[pathlib.Path], environment: dict[str, str], folder: pathlib.Path
) -> None:
    """Puts manual pages and completion into all wheels. They are made by the commands of those that run here."""
    here = [wheel for wheel in wheels if wheel.stem.endswith(f"_{platform.machine()}")]
    unpack = [*PYTHON, "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", folder / "here"]
    subprocess.run([*unpack, *here, *wings], check=True)
    found = environment | {"PYTHONPATH": str(folder / "here")}
    tool = ROOT / "tools" / "command_files.py"
    subprocess.run([sys.executable, tool, *wheels, *wings], env=found, check=True)


def wing(name: str, environment: dict[str, str], folder: pathlib.Path) -> pathlib.Path:
    """The wheel of a wing, of a copy of its sources, since setuptools writes next to them."""
    copy = folder / name
    shutil.copytree(ROOT / name, copy, ignore=shutil.ignore_patterns("tests", "*.egg-info", "__pycache__"))
    words = ["wheel", "--quiet", "--no-build-isolation", "--no-deps", "--wheel-dir", folder, copy]
    subprocess.run([*PYTHON, "pip", *words], env=environment, check=True)
    return next(folder.glob(f"topolane_{name}-*.whl"))


if __name__ == "__main__":
    main()
