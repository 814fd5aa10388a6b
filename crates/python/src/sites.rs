//! Chooses sites for all programs, for Python.

use std::sync::Arc;

use pyo3::prelude::*;
use topolane_placement::{Amounts, Occupancy, Placement, Share};
use topolane_sites::{self as engine, Pair, Path, SITE_POLICIES, Terms, WanRoutes};

use crate::answering::answering;
use crate::error::bad_input;
use crate::machine::Machine;

/// The traffic per second between two equal halves of a program. Immutable.
#[pyclass(frozen, from_py_object, module = "topolane._engine")]
#[derive(Clone)]
pub struct Cut {
    cut: engine::Cut,
}

#[pymethods]
impl Cut {
    #[new]
    #[pyo3(signature = (turns, bytes, busiest_bursts=0.0, busiest_bytes=0.0))]
    fn new(turns: f64, bytes: f64, busiest_bursts: f64, busiest_bytes: f64) -> PyResult<Self> {
        check("turns", turns)?;
        check("bytes", bytes)?;
        check("busiest_bursts", busiest_bursts)?;
        check("busiest_bytes", busiest_bytes)?;
        let busiest = Pair { bursts: busiest_bursts, bytes: busiest_bytes };
        Ok(Cut { cut: engine::Cut { turns, bytes, busiest } })
    }

    /// Turns per second of the rank that has most.
    #[getter]
    fn turns(&self) -> f64 {
        self.cut.turns
    }

    /// Bytes per second in the busier direction.
    #[getter]
    fn bytes(&self) -> f64 {
        self.cut.bytes
    }

    /// How much longer a second of a run on one site takes over that path, in seconds.
    #[pyo3(signature = (latency, bandwidth, window=None))]
    fn loss(&self, latency: f64, bandwidth: f64, window: Option<f64>) -> PyResult<f64> {
        check("latency", latency)?;
        positive("bandwidth", bandwidth)?;
        window.map_or(Ok(()), |window| positive("window", window))?;
        Ok(self.cut.loss(Path { latency, bandwidth, window }))
    }

    /// The cut per second of an undisturbed run, from one measured while `lost` seconds per second were lost.
    fn undisturbed(&self, lost: f64) -> PyResult<Self> {
        check("lost", lost)?;
        Ok(Cut { cut: self.cut.undisturbed(lost) })
    }
}

/// A program, for the choice of sites. Immutable.
#[pyclass(frozen, from_py_object, module = "topolane._engine")]
#[derive(Clone)]
pub struct SiteProgram {
    program: engine::Program,
}

#[pymethods]
impl SiteProgram {
    #[new]
    #[pyo3(signature = (guests, cut, *, apart=vec![], here=None, exchange=0, cores=1, memory=0, nodes=vec![], sites=vec![], dirty=0.0, remaining=3600.0, settled=f64::INFINITY, compute=0.0, in_mpi=None, correction=None, outside=0.0, home=None, barred=vec![]))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        guests: u32,
        cut: Cut,
        apart: Vec<Cut>,
        here: Option<Cut>,
        exchange: u32,
        cores: u32,
        memory: u64,
        nodes: Vec<u32>,
        sites: Vec<u32>,
        dirty: f64,
        remaining: f64,
        settled: f64,
        compute: f64,
        in_mpi: Option<f64>,
        correction: Option<f64>,
        outside: f64,
        home: Option<u32>,
        mut barred: Vec<u32>,
    ) -> PyResult<Self> {
        if guests == 0 || cores == 0 {
            return Err(bad_input("a program has at least one guest, and a guest one core"));
        }
        if !nodes.is_empty() && nodes.len() != guests as usize {
            let nodes = nodes.len();
            return Err(bad_input(format!("{nodes} nodes are given for {guests} guests")));
        }
        check("dirty", dirty)?;
        check("remaining", remaining)?;
        if settled.is_nan() || settled < 0.0 {
            return Err(bad_input(format!("settled must be a number from 0, not {settled}")));
        }
        check("compute", compute)?;
        check("outside", outside)?;
        check("in_mpi", in_mpi.unwrap_or(0.0))?;
        check("correction", correction.unwrap_or(0.0))?;
        barred.sort_unstable();
        let program = engine::Program {
            guests,
            guest: Amounts::new(cores, memory),
            nodes,
            sites,
            cut: cut.cut,
            apart: apart.into_iter().map(|cut| cut.cut).collect(),
            here: here.map(|here| here.cut),
            exchange,
            dirty,
            remaining,
            settled,
            compute,
            in_mpi,
            correction,
            outside,
            home,
            barred,
        };
        Ok(SiteProgram { program })
    }
}

/// Where a program should run, with the gains and costs.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct SiteChoice {
    /// A node for every guest; empty for a new program that does not fit now.
    nodes: Vec<u32>,
    /// How much longer a second of its run takes where it runs now, in seconds, compared with one site on reference
    /// cores.
    loss_now: f64,
    /// The same as `loss_now`, for the chosen hosts.
    loss_then: f64,
    /// The part of `loss_now` due to the WAN.
    wan_now: f64,
    /// The part of `loss_then` due to the WAN.
    wan_then: f64,
    /// The speed of its slowest core where it runs now.
    speed_now: f64,
    /// The speed of its slowest core on the chosen hosts.
    speed_then: f64,
    /// Seconds of computing per second of its run on one site.
    compute: f64,
    /// The measured loss to the WAN divided by the predicted one.
    correction: f64,
    /// Seconds of its remaining run that the choice saves.
    gain: f64,
    /// Seconds of its run that the moves cost.
    cost: f64,
    /// The number of guests that move.
    moves: u32,
}

/// (name, summary) of every built-in site policy.
#[pyfunction]
pub fn site_policies() -> Vec<(&'static str, &'static str)> {
    SITE_POLICIES.iter().map(|info| (info.name, info.summary)).collect()
}

/// Chooses where all programs should run. `held` has (nodes, cores, memory) of guests that belong to no program; `down`
/// has nodes out of service; `window` is the most bytes in flight on one connection.
#[pyfunction]
#[pyo3(signature = (machine, programs, *, policy="predicted-time", held=vec![], down=vec![], window=None, margin=None, least=None, doubt=None, rest=None, drag=None))]
#[allow(clippy::too_many_arguments)]
pub fn choose_sites(
    py: Python<'_>,
    machine: &Machine,
    programs: Vec<SiteProgram>,
    policy: &str,
    held: Vec<(Vec<u32>, u32, u64)>,
    down: Vec<u32>,
    window: Option<f64>,
    margin: Option<f64>,
    least: Option<f64>,
    doubt: Option<f64>,
    rest: Option<f64>,
    drag: Option<f64>,
) -> PyResult<Vec<SiteChoice>> {
    let names = || SITE_POLICIES.iter().map(|info| info.name).collect::<Vec<_>>().join(", ");
    let policy = engine::site_policy(policy).ok_or_else(|| {
        bad_input(format!("no site policy is called {policy:?}; there are {}", names()))
    })?;
    window.map_or(Ok(()), |window| positive("window", window))?;
    let usual = Terms::default();
    let terms = Terms {
        margin: margin.unwrap_or(usual.margin),
        least: least.unwrap_or(usual.least),
        doubt: doubt.unwrap_or(usual.doubt),
        rest: rest.unwrap_or(usual.rest),
        drag: drag.unwrap_or(usual.drag),
    };
    for (what, term) in [
        ("margin", terms.margin),
        ("least", terms.least),
        ("doubt", terms.doubt),
        ("rest", terms.rest),
        ("drag", terms.drag),
    ] {
        check(what, term)?;
    }
    let programs: Vec<engine::Program> = programs.into_iter().map(|one| one.program).collect();
    let fabric = &machine.fabric;
    let known =
        |nodes: &[u32], most: u32, what: &str| match nodes.iter().find(|&&node| node >= most) {
            Some(node) => Err(bad_input(format!("{what} {node} is not on the machine"))),
            None => Ok(()),
        };
    for program in &programs {
        known(&program.nodes, fabric.nodes(), "node")?;
        known(&program.sites, fabric.sites(), "site")?;
        known(program.home.as_slice(), fabric.sites(), "site")?;
        known(&program.barred, fabric.nodes(), "node")?;
    }
    known(&down, fabric.nodes(), "node")?;
    let mut occupancy = Occupancy::new(Arc::clone(fabric));
    for (nodes, cores, memory) in held {
        known(&nodes, fabric.nodes(), "node")?;
        for node in nodes {
            // An overbooked host has nothing left.
            let cores = cores.min(occupancy.cores_free(node));
            let memory = memory.min(occupancy.memory_free(node));
            if cores > 0 {
                let placement = Placement::new(fabric, vec![node], Share::part(cores, memory));
                occupancy.claim(&placement).map_err(|error| bad_input(error.to_string()))?;
            }
        }
    }
    for node in down {
        occupancy.set_in_service(node, false);
    }
    let wan = WanRoutes::new(fabric, window);
    let chosen =
        answering(py, move || engine::choose_sites(policy, &programs, &occupancy, &wan, &terms))?;
    let choice = |moved: engine::MovedProgram| {
        let judged = moved.judgement;
        SiteChoice {
            nodes: moved.nodes,
            loss_now: judged.loss_now,
            loss_then: judged.loss_then,
            wan_now: judged.wan_now,
            wan_then: judged.wan_then,
            speed_now: judged.speed_now,
            speed_then: judged.speed_then,
            compute: judged.compute,
            correction: judged.correction,
            gain: judged.gain,
            cost: judged.cost,
            moves: judged.moves,
        }
    };
    Ok(chosen.into_iter().map(choice).collect())
}

/// Does a fixed amount of work; see the stub file.
#[pyfunction]
pub fn smooth(times: u32) -> (u64, f64) {
    engine::smooth(times)
}

fn check(what: &str, value: f64) -> PyResult<()> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(bad_input(format!("{what} must be a number from 0, not {value}")))
}

fn positive(what: &str, value: f64) -> PyResult<()> {
    if value > 0.0 {
        return Ok(());
    }
    Err(bad_input(format!("{what} must be a number above 0, not {value}")))
}
