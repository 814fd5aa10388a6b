//! What a caller asks for.

use std::ffi::c_char;
use std::mem::offset_of;
use std::sync::Arc;

use topolane_fabric::{Fabric, NodeIndex, NodeSet};
use topolane_placement::{Amounts, Level, NotWithin, Share, Within};

use crate::guard::{Problem, array, or_else, sized, text};

/// An amount of a counted resource: `cores`, `memory` in bytes, or one that the machine file counts, such as `gpu`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Amount {
    /// The name of the resource.
    pub name: *const c_char,
    /// How much of it.
    pub count: u64,
}

/// A request for slots. Set it up with `topolane_request_init`, then fill in what is wanted. The arrays belong to the caller and
/// need live only during the call.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// The size of this struct where it was compiled: `topolane_request_init` sets it.
    pub size: usize,
    /// Identity of the job, unique among those that a state holds.
    pub id: u64,
    /// Slots wanted, at least 1: nodes, or parts of nodes if `amounts` are given.
    pub slots: u32,
    /// Whether several slots may lie on one node.
    pub stacked: bool,
    /// The least share of full bandwidth that the job accepts on dedicated links, over 0 and up to 1.
    pub min_bandwidth: f64,
    /// What each slot takes from its node; none: the whole node.
    pub amounts: *const Amount,
    /// How many amounts.
    pub amount_count: usize,
    /// Nodes that it may use.
    pub eligible: *const u32,
    /// Entries in `eligible`; `SIZE_MAX` for all nodes of the machine, which is what `topolane_request_init` sets.
    pub eligible_count: usize,
    /// Nodes on which members of the same group run, once per member.
    pub members: *const u32,
    /// The number of entries in `members`.
    pub member_count: usize,
    /// Whether a slot takes nothing of what is counted of its node, so that any number of jobs may be on it. `amounts` are
    /// then not looked at. For a caller that knows itself which nodes have room and names them in `eligible`. Since version 2.
    pub shares_nodes: bool,
    /// In place of `eligible`, the nodes that it may use as bits, node 0 in the lowest bit of the first word; NULL: `eligible`
    /// counts. Since version 3.
    pub eligible_bits: *const u64,
    /// How many words of 64 bits; nodes beyond them may not be used. Since version 3.
    pub eligible_words: usize,
    /// Nodes of each part of the job that must lie in one group of `segment_level`; 0: there are no such parts. Since version 4.
    pub segment: u32,
    /// `node`, `leaf`, `pod`, `domain`, or the number of a level of the tree; NULL: domains or, where there are none, leaves.
    /// Only Kueue's rules look at it. Since version 4.
    pub segment_level: *const c_char,
    /// The free slots of each node, for a caller that keeps count of them itself; NULL: the state does. Not looked at
    /// unless `shares_nodes`. More than one on a node only if `stacked`. Since version 4.
    pub free_slots: *const u32,
    /// The slots of each node if nothing ran on it, an entry for each of `free_slots`; NULL: the free ones. They
    /// distinguish *not now* from *never*. Since version 4.
    pub all_slots: *const u32,
    /// The number of entries in `free_slots`; nodes beyond them have no slot. Since version 4.
    pub slot_count: usize,
    /// The group that must hold the job, under every policy: `unconstrained`, `preferred:LEVEL` or `required:LEVEL`, where LEVEL is
    /// `node`, `leaf`, `pod`, `domain` or the number of a level of the tree; NULL: the policy's own rule. Since version 4.
    pub within: *const c_char,
}

/// The size of a request in version 1.
const FIRST_SIZE: usize = offset_of!(Request, shares_nodes);

/// Sets a request up for one whole node anywhere, at full bandwidth. `size` is `sizeof(topolane_request)`; members of a newer
/// library beyond it are left alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_request_init(request: *mut Request, size: usize) {
    or_else((), || {
        if request.is_null() || size < FIRST_SIZE {
            return;
        }
        let plain = Request {
            size,
            id: 0,
            slots: 1,
            stacked: false,
            min_bandwidth: 1.0,
            amounts: std::ptr::null(),
            amount_count: 0,
            eligible: std::ptr::null(),
            eligible_count: usize::MAX,
            members: std::ptr::null(),
            member_count: 0,
            shares_nodes: false,
            eligible_bits: std::ptr::null(),
            eligible_words: 0,
            segment: 0,
            segment_level: std::ptr::null(),
            free_slots: std::ptr::null(),
            all_slots: std::ptr::null(),
            slot_count: 0,
            within: std::ptr::null(),
        };
        let bytes = size.min(size_of::<Request>());
        // SAFETY: the caller has a struct of this size there; it need not be set before.
        unsafe {
            request.cast::<u8>().copy_from_nonoverlapping((&raw const plain).cast::<u8>(), bytes);
        }
    });
}

impl Request {
    /// The request that a caller set up, perhaps for an earlier version.
    ///
    /// # Safety
    /// `request` is NULL or was set up by `topolane_request_init`.
    pub(crate) unsafe fn read(request: *const Request) -> Result<Request, Problem> {
        let wrong = "the request was not set up by topolane_request_init";
        // SAFETY: the caller's promise; the struct begins with its size, and its members may be zero.
        unsafe { sized(request, "request", FIRST_SIZE, wrong) }
    }

    /// The request on a machine.
    ///
    /// # Safety
    /// The arrays are as long as their counts say.
    pub(crate) unsafe fn on(
        &self,
        fabric: &Fabric,
    ) -> Result<topolane_placement::Request, Problem> {
        if self.slots == 0 {
            return Err("a request asks for at least 1 slot, not 0".into());
        }
        if !(self.min_bandwidth > 0.0 && self.min_bandwidth <= 1.0) {
            let given = self.min_bandwidth;
            return Err(format!("min_bandwidth is over 0 and up to 1, not {given}").into());
        }
        // SAFETY: the caller's promise.
        let (amounts, members) = unsafe {
            let members = array(self.members, self.member_count, "members")?;
            (
                array(self.amounts, self.amount_count, "amounts")?,
                nodes_on(fabric, members, "member")?,
            )
        };
        let eligible = if !self.eligible_bits.is_null() {
            // SAFETY: the caller's promise.
            let words = unsafe { array(self.eligible_bits, self.eligible_words, "eligible_bits")? };
            Some(Arc::new(NodeSet::of_words(fabric.nodes(), words)))
        } else if self.eligible_count == usize::MAX {
            None
        } else {
            // SAFETY: the caller's promise.
            let nodes = unsafe { array(self.eligible, self.eligible_count, "eligible")? };
            let nodes = nodes_on(fabric, nodes, "eligible node")?;
            Some(Arc::new(NodeSet::of(fabric.nodes(), nodes)))
        };
        let share = if self.shares_nodes {
            nothing()
        } else {
            // SAFETY: the caller's promise.
            unsafe { share_of(amounts, fabric)? }
        };
        // SAFETY: the caller's promise.
        let (segment_level, within) = unsafe { self.levels_on(fabric)? };
        let counted = |slots: *const u32, name: &str| -> Result<Option<Arc<[u32]>>, Problem> {
            if slots.is_null() || !self.shares_nodes {
                return Ok(None);
            }
            // SAFETY: the caller's promise.
            let slots = unsafe { array(slots, self.slot_count, name)? };
            let most = if self.stacked { u32::MAX } else { 1 };
            Ok(Some(slots.iter().map(|&slots| slots.min(most)).collect()))
        };
        let (slots, room) =
            (counted(self.free_slots, "free_slots")?, counted(self.all_slots, "all_slots")?);
        Ok(topolane_placement::Request {
            segment: (self.segment > 0).then_some(self.segment),
            segment_level,
            within,
            id: self.id,
            nodes: self.slots,
            stacked: self.stacked,
            share,
            min_bandwidth: (self.min_bandwidth < 1.0).then_some(self.min_bandwidth),
            eligible,
            members,
            slots,
            room,
            walltime: f64::INFINITY,
            ..topolane_placement::Request::default()
        })
    }
}

impl Request {
    /// The level of segments, and where the job has to lie.
    ///
    /// # Safety
    /// The texts are NULL or texts.
    unsafe fn levels_on(&self, fabric: &Fabric) -> Result<(Option<Level>, Within), Problem> {
        let mut level = None;
        if !self.segment_level.is_null() {
            // SAFETY: the caller's promise.
            let name = unsafe { text(self.segment_level, "segment_level")? };
            let named =
                Level::parse(name).ok_or_else(|| format!("segment_level {name:?} is no level"))?;
            named.check(fabric).map_err(|why| format!("segment_level {name}: {why}"))?;
            level = Some(named);
        }
        let mut within = Within::Unsaid;
        if !self.within.is_null() {
            // SAFETY: the caller's promise.
            let words = unsafe { text(self.within, "within")? };
            within = words.parse().map_err(|why: NotWithin| format!("within: {why}"))?;
            within.check(fabric).map_err(|why| format!("within {words}: {why}"))?;
        }
        Ok((level, within))
    }
}

/// What a slot takes that leaves everything on its node to others.
pub(crate) fn nothing() -> Share {
    Share::Part(Amounts::default())
}

/// The same nodes, all on the machine.
pub(crate) fn nodes_on(
    fabric: &Fabric,
    nodes: &[u32],
    what: &str,
) -> Result<Vec<NodeIndex>, Problem> {
    match nodes.iter().find(|&&node| node >= fabric.nodes()) {
        Some(node) => Err(format!("{what} {node} is not on the machine").into()),
        None => Ok(nodes.to_vec()),
    }
}

/// What each slot takes of a node of the machine.
///
/// # Safety
/// The names are NULL or texts.
pub(crate) unsafe fn share_of(amounts: &[Amount], fabric: &Fabric) -> Result<Share, Problem> {
    if amounts.is_empty() {
        return Ok(Share::Whole);
    }
    let mut counts = Vec::with_capacity(amounts.len());
    for amount in amounts {
        // SAFETY: the caller's promise.
        let name = unsafe { text(amount.name, "the name of an amount")? };
        if fabric.resources().index(name).is_none() {
            return Err(format!("the machine counts no resource {name:?}").into());
        }
        if name == "cores" && u32::try_from(amount.count).is_err() {
            return Err(format!("{} cores are more than a node can have", amount.count).into());
        }
        counts.push((name, amount.count));
    }
    let amounts = Amounts::named(fabric.resources(), counts).map_err(|why| why.to_string())?;
    if amounts.cores() == 0 {
        return Err("a slot takes at least 1 core, not 0".into());
    }
    Ok(Share::Part(amounts))
}
