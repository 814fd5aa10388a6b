"""Checks the topology plugin on one host, before Slurm's daemons there load it.

    host_check.py controller|node PLUGINDIR SLURM_CONF

Prints a fact in each line: a word and its value; `wrong` and a sentence for what would go wrong. `plugin_check` sends
the text of this file to hosts that have no Topolane, so it uses the standard library of Python 3.6 alone.
"""

import ctypes
import os
import re
import subprocess
import sys

PLUGIN = "topology_topolane.so"
LIBRARY = "libslurmfull.so"
"""Slurm's own code. It loads topology plugins, and holds the names of the entry points that it looks up in them."""


def say(word, value):
    print(word, value, flush=True)


def found(name, folders):
    """The first file of this name, where Slurm would look for it; None if there is none."""
    paths = [os.path.join(folder, name) for folder in folders]
    return next((path for path in paths if os.path.isfile(path)), None)


def installed_release(role):
    """The release of Slurm's programs on this host, such as 24.11.5; None if there are none."""
    programs = ("slurmctld",) if role == "controller" else ("slurmd", "scontrol")
    for program in programs:
        try:
            done = subprocess.run([program, "-V"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except OSError:
            continue
        match = re.search(r"\b(\d+\.\d+\.\d+)", done.stdout.decode("ascii", "replace"))
        if match:
            return match.group(1)
    return None


def looked_up(library):
    """The symbols that this Slurm looks up in a topology plugin."""
    with open(library, "rb") as file:
        text = file.read()
    names = set(re.findall(rb"\x00(topology_p_\w+)(?=\x00)", text))
    names.update(name for name in (b"plugin_id", b"supports_exclusive_topo") if b"\x00" + name + b"\x00" in text)
    return sorted(name.decode() for name in names)


def load(role, folders, slurm_conf):
    """Loads the plugin as Slurm does. Runs in a process of its own, which a wrong library may end."""
    plugin, library = found(PLUGIN, folders), found(LIBRARY, folders)
    if library is None:
        say("wrong", "there is no %s in PluginDir=%s: is Slurm installed there?" % (LIBRARY, ":".join(folders)))
        return
    ctypes.CDLL(library, os.RTLD_LAZY | os.RTLD_GLOBAL)
    try:
        loaded = ctypes.CDLL(plugin, os.RTLD_LAZY)
    except OSError as error:
        say("wrong", "%s cannot be loaded: %s" % (plugin, error))
        return
    try:
        number = ctypes.c_uint32.in_dll(loaded, "plugin_version").value
    except ValueError:
        say("wrong", "%s is no plugin of Slurm" % plugin)
        return
    built = "%d.%02d.%d" % (number >> 16, number >> 8 & 255, number & 255)
    say("built", built)
    installed = installed_release(role)
    say("release", installed or "unknown")
    if installed is None:
        say("wrong", "no program of Slurm is there that says its release")
    elif installed != built:
        say("wrong", "%s was built for Slurm %s, and Slurm here is %s" % (plugin, built, installed))
    missing = [name for name in looked_up(library) if not hasattr(loaded, name)]
    if missing:
        say("wrong", "%s lacks %s, which Slurm looks up" % (plugin, ", ".join(missing)))
    if role == "controller" and not missing and installed == built:
        os.environ["SLURM_CONF"] = slurm_conf
        loaded.topolane_plugin_check.restype = ctypes.c_char_p
        facts = loaded.topolane_plugin_check().decode("utf-8", "replace")
        print(facts, end="", flush=True)
        stock = "topology_%s.so" % re.search(r"^stock (.*)$", facts, re.MULTILINE).group(1)
        if found(stock, folders) is None:
            say("wrong", "there is no %s in PluginDir=%s, which topolane.conf names" % (stock, ":".join(folders)))


def main(role, plugin_dir, slurm_conf):
    os.environ["PATH"] = os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin:/sbin"
    folders = plugin_dir.split(":")
    if found(PLUGIN, folders) is None:
        say("wrong", "there is no %s in PluginDir=%s: copy it there" % (PLUGIN, plugin_dir))
        return
    child = os.fork()
    if not child:
        code = 1
        try:
            load(role, folders, slurm_conf)
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if status:
        how = "signal %d" % os.WTERMSIG(status) if os.WIFSIGNALED(status) else "an error"
        say("wrong", "loading %s ends the process by %s" % (found(PLUGIN, folders), how))
    say("checked", "yes")


main(*sys.argv[1:])
