//! The required functions of libxenctrl. The library belongs to one version of Xen, so it is loaded when the agent
//! starts and not linked.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::mem::transmute_copy;
use std::ptr::null;

type Handle = *mut c_void;

/// The loaded library.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    open: unsafe extern "C" fn(*const c_void, *const c_void, u32) -> Handle,
    close: unsafe extern "C" fn(Handle) -> c_int,
    pause: unsafe extern "C" fn(Handle, u32) -> c_int,
    unpause: unsafe extern "C" fn(Handle, u32) -> c_int,
    domains: unsafe extern "C" fn(Handle, u32, u32, *mut About) -> c_int,
    vcpu: unsafe extern "C" fn(Handle, u32, u32, *mut Vcpu) -> c_int,
    cpumap_size: unsafe extern "C" fn(Handle) -> c_int,
    affinity: unsafe extern "C" fn(Handle, u32, c_int, *mut u8, *mut u8, u32) -> c_int,
}

/// `struct xen_domctl_getdomaininfo` (public/domctl.h). The fields after these differ between versions and are not
/// read.
#[repr(C, align(8))]
struct About {
    domain: u16,
    pad: u16,
    flags: u32,
    memory: [u64; 6],
    cpu_time: u64,
    online: u32,
    last_vcpu: u32,
    ssid: u32,
    uuid: [u8; 16],
    rest: [u8; 4096],
}

impl About {
    const EMPTY: About = About {
        domain: 0,
        pad: 0,
        flags: 0,
        memory: [0; 6],
        cpu_time: 0,
        online: 0,
        last_vcpu: 0,
        ssid: 0,
        uuid: [0; 16],
        rest: [0; 4096],
    };

    fn known(&self) -> Known {
        Known {
            uuid: self.uuid,
            over: self.flags & OVER != 0,
            paused: self.flags & PAUSED != 0,
            // A domain under construction has no virtual processors; Xen then gives the largest number as its last one.
            vcpus: self.last_vcpu.wrapping_add(1),
        }
    }
}

/// What Xen reports about a domain.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// The UUID of the domain.
    pub uuid: [u8; 16],
    /// Whether the domain is being destroyed or has shut down.
    pub over: bool,
    /// Whether the domain is paused.
    pub paused: bool,
    /// The number of its virtual processors.
    pub vcpus: u32,
}

/// `XEN_DOMINF_dying`, `XEN_DOMINF_shutdown`.
const OVER: u32 = 1 | 4;
/// `XEN_DOMINF_paused`.
const PAUSED: u32 = 8;
/// `XEN_VCPUAFFINITY_HARD`.
const HARD: u32 = 1;

/// `struct xen_domctl_getvcpuinfo`: the state of a virtual processor.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Vcpu {
    number: u32,
    /// Whether the virtual processor is online (not unplugged).
    pub online: u8,
    /// Whether the virtual processor waits for an event.
    pub blocked: u8,
    running: u8,
    /// Nanoseconds that it has run on a core.
    pub cpu_time: u64,
    core: u32,
}

impl Library {
    /// Loads the library by name. `Err` is a sentence.
    pub fn load(name: &str) -> Result<Self, String> {
        let missing = || format!("{name} cannot be loaded");
        let file = CString::new(name).map_err(|_| missing())?;
        // SAFETY: the name ends with a zero byte. Initialising libxenctrl has no conditions.
        let library = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW) };
        if library.is_null() {
            return Err(missing());
        }
        // SAFETY: the types are those of xenctrl.h.
        unsafe {
            Ok(Library {
                open: symbol(library, name, c"xc_interface_open".as_ptr())?,
                close: symbol(library, name, c"xc_interface_close".as_ptr())?,
                pause: symbol(library, name, c"xc_domain_pause".as_ptr())?,
                unpause: symbol(library, name, c"xc_domain_unpause".as_ptr())?,
                domains: symbol(library, name, c"xc_domain_getinfolist".as_ptr())?,
                vcpu: symbol(library, name, c"xc_vcpu_getinfo".as_ptr())?,
                cpumap_size: symbol(library, name, c"xc_get_cpumap_size".as_ptr())?,
                affinity: symbol(library, name, c"xc_vcpu_setaffinity".as_ptr())?,
            })
        }
    }
}

/// Returns a function of the library.
///
/// # Safety
/// `F` is the type of that function.
unsafe fn symbol<F>(library: Handle, name: &str, function: *const c_char) -> Result<F, String> {
    // SAFETY: the library is loaded and stays so; the name ends with a zero byte.
    let found = unsafe { libc::dlsym(library, function) };
    if found.is_null() {
        return Err(format!("{name} lacks a function of libxenctrl 4.17"));
    }
    // SAFETY: a pointer to a function has the size of a pointer; its type is the caller's promise.
    Ok(unsafe { transmute_copy(&found) })
}

/// An open connection to Xen. Each domain has its own, so that they do not wait for each other.
#[derive(Debug)]
pub struct Xen {
    library: Library,
    handle: Handle,
}

// SAFETY: a handle of libxenctrl may be used by one thread after another.
unsafe impl Send for Xen {}

impl Xen {
    /// Opens a connection.
    pub fn open(library: Library) -> io::Result<Self> {
        // SAFETY: without loggers, the library logs to the standard error.
        let handle = unsafe { (library.open)(null(), null(), 0) };
        if handle.is_null() { Err(io::Error::last_os_error()) } else { Ok(Xen { library, handle }) }
    }

    /// Returns the state of a domain; `None` if there is none with this number.
    pub fn domain(&self, number: u32) -> io::Result<Option<Known>> {
        let mut about = About::EMPTY;
        // SAFETY: one entry is asked for, and there is room for more than any version writes.
        let found = unsafe { (self.library.domains)(self.handle, number, 1, &raw mut about) };
        if found < 0 {
            return Err(io::Error::last_os_error());
        }
        // If there is none with this number, Xen returns the next one.
        let same = found == 1 && u32::from(about.domain) == number;
        Ok(same.then(|| about.known()))
    }

    /// Pauses a domain. Xen counts pauses.
    pub fn pause(&self, domain: u32) -> io::Result<()> {
        // SAFETY: the handle is open.
        done(unsafe { (self.library.pause)(self.handle, domain) })
    }

    /// Undoes one pause.
    pub fn unpause(&self, domain: u32) -> io::Result<()> {
        // SAFETY: the handle is open.
        done(unsafe { (self.library.unpause)(self.handle, domain) })
    }

    /// Returns the state of a virtual processor.
    pub fn vcpu(&self, domain: u32, number: u32) -> io::Result<Vcpu> {
        let mut vcpu = Vcpu::default();
        // SAFETY: the pointer is to a value that outlives the call.
        done(unsafe { (self.library.vcpu)(self.handle, domain, number, &raw mut vcpu) })?;
        Ok(vcpu)
    }

    /// Restricts a virtual processor to these cores; `None` removes the restriction.
    pub fn pin(&self, domain: u32, vcpu: u32, cores: Option<&[usize]>) -> io::Result<()> {
        // SAFETY: the handle is open.
        let size = unsafe { (self.library.cpumap_size)(self.handle) };
        let size = usize::try_from(size).map_err(|_| io::Error::last_os_error())?;
        let mut hard = vec![if cores.is_none() { 0xff } else { 0_u8 }; size];
        for &core in cores.unwrap_or_default() {
            if let Some(byte) = hard.get_mut(core / 8) {
                *byte |= 1 << (core % 8);
            }
        }
        let mut soft = vec![0xff; size];
        let (domain_hard, domain_soft) = (hard.as_mut_ptr(), soft.as_mut_ptr());
        let vcpu = c_int::try_from(vcpu).unwrap_or(c_int::MAX);
        // SAFETY: both maps have the size that the library asks for, and outlive the call.
        done(unsafe {
            (self.library.affinity)(self.handle, domain, vcpu, domain_hard, domain_soft, HARD)
        })
    }
}

impl Drop for Xen {
    fn drop(&mut self) {
        // SAFETY: it was opened, and is closed once.
        let _ = unsafe { (self.library.close)(self.handle) };
    }
}

fn done(returned: c_int) -> io::Result<()> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A domain under construction has no virtual processors; Xen then gives all ones as the number of the last one.
    #[test]
    fn a_domain_without_virtual_processors_is_known() {
        let built = About { last_vcpu: u32::MAX, flags: PAUSED, ..About::EMPTY }.known();
        assert_eq!((built.vcpus, built.paused, built.over), (0, true, false));
        assert_eq!(About { last_vcpu: 3, ..About::EMPTY }.known().vcpus, 4);
    }
}
