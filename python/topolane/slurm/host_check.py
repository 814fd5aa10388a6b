"""Checks the topology plugin on one host, before Slurm's daemons there load it.

    host_check.py controller|node PLUGINDIR SLURM_CONF TOPOLOGYPLUGIN

Prints a fact in each line: a word and its value; `wrong` and a sentence for what would go wrong. `plugin_check` sends
the text of this file to hosts that have no Topolane, so it uses the standard library of Python 3.6 alone.
"""

import ctypes
import os
import re
import subprocess
import sys

PLUGIN = "topology_topolane.so"
OURS = "topolane_fault"
"""A symbol of the plugin, and of its copies alone: a sentence if Slurm must not take it, otherwise empty."""
LIBRARY = "libslurmfull.so"
"""Slurm's own code. It loads topology plugins, and holds the names of the entry points that it looks up in them."""


def say(word: str, value: str) -> None:
    write(f"{word} {value}\n".encode("utf-8", "replace"))


def write(text: bytes) -> None:
    """Python 3.6 cannot print every letter where no locale is set."""
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()


def found(name: str, folders: "list[str]") -> "str | None":
    """The first file of this name, where Slurm would look for it; None if there is none."""
    paths = [os.path.join(folder, name) for folder in folders]
    return next((path for path in paths if os.path.isfile(path)), None)


def installed_release(role: str, folders: "list[str]") -> "str | None":
    """The release of Slurm's programs on this host, such as 24.11.5; None if there are none. Looks for them in the
    prefix of PluginDir, such as /opt/slurm/sbin for /opt/slurm/lib/slurm, then in PATH.
    """
    programs = ("slurmctld",) if role == "controller" else ("slurmd", "scontrol")
    prefixes = [os.path.dirname(os.path.dirname(folder.rstrip("/"))) for folder in folders]
    near = [os.path.join(prefix, folder) for prefix in prefixes for folder in ("sbin", "bin")]
    for program in [found(name, near) or name for name in programs]:
        try:
            done = subprocess.run([program, "-V"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except OSError:
            continue
        match = re.search(r"\b(\d+\.\d+\.\d+)", done.stdout.decode("ascii", "replace"))
        if match:
            return match.group(1)
    return None


def looked_up(text: bytes) -> "list[str]":
    """The symbols that a Slurm looks up in a topology plugin, from the bytes of its library."""
    names = set(re.findall(rb"\x00(topology_p_\w+)(?=\x00)", text))
    names.update(
        name for name in (b"plugin_id", b"supports_exclusive_topo") if b"\x00" + name + b"\x00" in text
    )
    return sorted(name.decode() for name in names)


def file_names(text: bytes, slurm_conf: str, topology: str) -> "list[str]":
    """The file names of the plugins that Slurm will load: that of TopologyPlugin or, if there is a topology.yaml and
    Slurm knows that file, of the types in it.
    """
    # A node without slurm.conf gets all files from slurmctld.
    folder = os.path.dirname(slurm_conf) if os.path.isfile(slurm_conf) else "/run/slurm/conf"
    try:
        with open(os.path.join(folder, "topology.yaml"), "rb") as file:
            lines = re.sub(rb"(^|\s)#.*", b"", file.read())
    except OSError:
        lines = b""
    types = set(re.findall(rb"""(?:^|[\s{,"'])(tree|block|flat|ring|torus3d)["']? *:""", lines))
    if not types or b"topology.yaml" not in text:
        return [topology.replace("/", "_") + ".so"]
    return [f"topology_{each.decode()}.so" for each in sorted(types)]


def check_plugin(plugin: str, role: str, needed: "list[str]", folders: "list[str]") -> "ctypes.CDLL | None":
    """Loads a plugin and compares it with Slurm. Returns it if it is ours and all is well."""
    try:
        loaded = ctypes.CDLL(plugin, os.RTLD_LAZY)
    except OSError as error:
        say("wrong", f"{plugin} cannot be loaded: {error}")
        return None
    is_copy = os.path.basename(plugin) != PLUGIN
    if is_copy and not hasattr(loaded, OURS):
        if role == "controller":
            say(
                "wrong",
                f"Slurm loads its own {plugin}: put the directory of copies in front of PluginDir",
            )
        return None
    try:
        number = ctypes.c_uint32.in_dll(loaded, "plugin_version").value
    except ValueError:
        say("wrong", f"{plugin} is no plugin of Slurm")
        return None
    fault = (ctypes.c_char * 512).in_dll(loaded, OURS).value if hasattr(loaded, OURS) else b""
    if fault:
        say("wrong", f"{plugin}: {fault.decode('utf-8', 'replace')}")
        return None
    built = f"{number >> 16}.{number >> 8 & 255:02}.{number & 255}"
    say("built", built)
    installed = installed_release(role, folders)
    say("release", installed or "unknown")
    missing = [name for name in needed if not hasattr(loaded, name)]
    wrong = []
    if installed is None:
        wrong.append("no program of Slurm is there that says its release")
    elif installed != built:
        wrong.append(f"{plugin} is of Slurm {built}, and Slurm here is {installed}")
    if missing:
        wrong.append(f"{plugin} lacks {', '.join(missing)}, which Slurm looks up")
    for sentence in wrong:
        say("wrong", sentence)
    return None if wrong else loaded


def open_all(loaded: ctypes.CDLL) -> None:
    """Lets the plugin open configuration, engine and machine, as it does in slurmctld, and prints what it says."""
    loaded.topolane_plugin_check.restype = ctypes.c_char_p
    write(loaded.topolane_plugin_check() or b"")


def load(role: str, folders: "list[str]", slurm_conf: str, topology: str) -> None:
    """Loads the plugins as Slurm does. Runs in a process of its own, which a wrong library may end."""
    for folder in folders:
        if not os.path.isdir(folder):
            say(
                "wrong",
                f"PluginDir names {folder}, which is no directory there: no program of Slurm would start",
            )
    library = found(LIBRARY, folders)
    if library is None:
        say("wrong", f"there is no {LIBRARY} in PluginDir={':'.join(folders)}: is Slurm installed there?")
        return
    try:
        with open(library, "rb") as file:
            text = file.read()
        ctypes.CDLL(library, os.RTLD_LAZY | os.RTLD_GLOBAL)
    except OSError as error:
        say("wrong", f"Slurm's own {library} cannot be loaded: {error}")
        return
    ours = None
    os.environ["SLURM_CONF"] = slurm_conf
    for name in file_names(text, slurm_conf, topology):
        plugin = found(name, folders)
        if plugin is None:
            say("wrong", f"there is no {name} in PluginDir={':'.join(folders)}: copy it there")
        else:
            ours = check_plugin(plugin, role, looked_up(text), folders) or ours
    if role == "controller" and ours is not None:
        open_all(ours)


def main(role: str, plugin_dir: str, slurm_conf: str, topology: str) -> None:
    os.environ["PATH"] = os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin:/sbin"
    child = os.fork()
    if not child:
        code = 1
        try:
            load(role, [folder for folder in plugin_dir.split(":") if folder], slurm_conf, topology)
            code = 0
        except (AttributeError, OSError, ValueError) as error:
            say("wrong", f"the check fails: {type(error).__name__}: {error}")
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if status:
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "an error"
        say("wrong", f"loading the plugin ends the process by {how}")
    say("checked", "yes")


if __name__ == "__main__":
    main(*sys.argv[1:])
