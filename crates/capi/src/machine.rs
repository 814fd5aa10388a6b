//! Machines.

use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::Arc;

use topolane_fabric::{Fabric, join, preset, read};

use crate::guard::{
    Problem, Status, array, give, guarded, object, or_else, take_back, text, to_c, writable,
};

/// A machine: its nodes and its switches. It never changes.
pub struct Machine {
    pub(crate) fabric: Arc<Fabric>,
    names: Vec<CString>,
}

impl Machine {
    fn new(fabric: Fabric) -> Self {
        let names = (0..fabric.nodes()).map(|node| to_c(fabric.node_name(node))).collect();
        Machine { fabric: Arc::new(fabric), names }
    }
}

/// Reads a machine from the `length` bytes of `content`: Topolane's TOML, Slurm's topology.conf, or what ibnetdiscover prints.
/// `source` is the name of the file, for errors and to tell the format. The library reads no file itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_machine_read(
    source: *const c_char,
    content: *const c_char,
    length: usize,
    machine: *mut *mut Machine,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        guarded(error, || {
            let to = writable(machine, "machine")?;
            *to = ptr::null_mut();
            let source = text(source, "source")?;
            let bytes = array(content.cast::<u8>(), length, "content")?;
            let content = std::str::from_utf8(bytes).map_err(|_| format!("{source}: not UTF-8"))?;
            let format =
                read::Format::guess(source, content).ok_or_else(|| read::no_format(source))?;
            let in_file =
                |problem: topolane_fabric::InputError| Problem(problem.in_file(source).to_string());
            // Links are promised on it, so switches that Slurm describes must be a tree as they stand.
            let options =
                read::MachineOptions { only_trees: true, ..read::MachineOptions::default() };
            let read = read::read(content, format, &options).map_err(in_file)?;
            let mut description = read.description;
            if description.name.is_empty() {
                source.clone_into(&mut description.name);
            }
            let fabric = Fabric::build(&description);
            give(to, Machine::new(fabric.map_err(in_file)?));
            Ok(Status::Ok)
        })
    }
}

/// A machine by name: `cab`, `fat-tree(radix=16)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_machine_preset(
    name: *const c_char,
    machine: *mut *mut Machine,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        guarded(error, || {
            let to = writable(machine, "machine")?;
            *to = ptr::null_mut();
            let name = text(name, "name")?;
            let description =
                preset(name).ok_or_else(|| format!("there is no machine {name:?}"))?;
            let fabric = description.and_then(|description| Fabric::build(&description));
            give(to, Machine::new(fabric.map_err(|problem| problem.to_string())?));
            Ok(Status::Ok)
        })
    }
}

/// One machine of two that describe the same nodes: the cables of `wiring`, and the nodes that only `tree` names on the switches
/// of their neighbours. `notes` is set to what was assumed, a sentence a line, or to NULL if nothing was; free it with
/// `topolane_text_free`. Since version 3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_machine_join(
    wiring: *const Machine,
    tree: *const Machine,
    machine: *mut *mut Machine,
    notes: *mut *mut c_char,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        guarded(error, || {
            let to = writable(machine, "machine")?;
            *to = ptr::null_mut();
            let said = writable(notes, "notes")?;
            *said = ptr::null_mut();
            let (wiring, tree) = (object(wiring, "wiring")?, object(tree, "tree")?);
            let joined = join(&wiring.fabric.description(), &tree.fabric.description())
                .map_err(|problem| problem.to_string())?;
            let fabric =
                Fabric::build(&joined.description).map_err(|problem| problem.to_string())?;
            let sentences = joined.sentences().join("\n");
            give(to, Machine::new(fabric));
            if !sentences.is_empty() {
                *said = to_c(&sentences).into_raw();
            }
            Ok(Status::Ok)
        })
    }
}

/// Frees a machine. States made of it live on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_machine_free(machine: *mut Machine) {
    // SAFETY: the caller gives NULL or a machine of this library.
    unsafe { take_back(machine) };
}

/// How many nodes a machine has; 0 for NULL. They are numbered from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_machine_nodes(machine: *const Machine) -> u32 {
    // SAFETY: the caller gives NULL or a machine of this library.
    or_else(0, || unsafe { machine.as_ref() }.map_or(0, |machine| machine.fabric.nodes()))
}

/// The name of a node, or NULL if there is no such node. It lives as long as the machine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_machine_node_name(
    machine: *const Machine,
    node: u32,
) -> *const c_char {
    or_else(ptr::null(), || {
        // SAFETY: the caller gives NULL or a machine of this library.
        let machine = unsafe { machine.as_ref() };
        let name = machine.and_then(|machine| machine.names.get(node as usize));
        name.map_or(ptr::null(), |name| name.as_ptr())
    })
}

/// The number of the node of a name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_machine_node(
    machine: *const Machine,
    name: *const c_char,
    node: *mut u32,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        guarded(error, || {
            let machine = object(machine, "machine")?;
            let to = writable(node, "node")?;
            let name = text(name, "name")?;
            let found = machine.fabric.node_named(name);
            *to = found.ok_or_else(|| format!("there is no node {name:?}"))?;
            Ok(Status::Ok)
        })
    }
}

/// The number of a node's block: its domain, or its leaf if it is in none; `UINT32_MAX` if there is no such node. The nodes of
/// a leaf, of a pod and so on have numbers in a row. Since version 8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_machine_block(machine: *const Machine, node: u32) -> u32 {
    or_else(u32::MAX, || {
        // SAFETY: the caller gives NULL or a machine of this library.
        let machine = unsafe { machine.as_ref() };
        let fabric = machine.map(|machine| &machine.fabric).filter(|fabric| node < fabric.nodes());
        fabric.map_or(u32::MAX, |fabric| fabric.block(node))
    })
}
