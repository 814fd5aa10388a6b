//! The Python extension module `topolane._engine`: thin wrappers, no rules of its own.

mod answering;
mod arrow;
mod built;
mod decision;
mod dedicated;
mod error;
mod gang;
#[cfg(target_os = "linux")]
mod gang_agent;
mod gang_hypervisor;
#[cfg(target_os = "linux")]
mod gang_shown;
mod link_use;
mod machine;
mod machine_methods;
mod making_room;
mod mapping;
mod memory;
mod network;
mod other_network;
mod other_network_methods;
mod patterns;
mod policy;
mod rank_k;
mod retrace;
mod routing;
mod run;
mod run_settings;
mod scheduler;
mod sites;
mod state;
mod table;
mod tables;
mod traffic;
mod views;
mod workload;

/// The Python module.
#[pyo3::pymodule]
mod _engine {
    #[pymodule_export]
    use crate::built::built;
    #[pymodule_export]
    use crate::decision::{Decision, Obstacle, Refusal};
    #[pymodule_export]
    use crate::dedicated::{DedicatedRoutes, ForwardingTables};
    #[pymodule_export]
    use crate::error::InputError;
    #[pymodule_export]
    use crate::gang::GangLimits;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::gang_agent::GangAgent;
    #[pymodule_export]
    use crate::gang_hypervisor::{
        GangJob, GangJobOutcome, GangOutcome, gang_policies, simulate_gangs,
    };
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::gang_shown::{GangHeld, GangMeans, GangRound, GangSwitch};
    #[pymodule_export]
    use crate::link_use::{LinkUse, crossings, links_shared};
    #[pymodule_export]
    use crate::machine::Machine;
    #[pymodule_export]
    use crate::machine_methods::{machine_formats, machine_writers, presets};
    #[pymodule_export]
    use crate::making_room::{NoRoom, RoomPlan, make_room};
    #[pymodule_export]
    use crate::mapping::{Mapping, assign, efforts, map_ranks, parts};
    #[pymodule_export]
    use crate::memory::end_without_memory;
    #[pymodule_export]
    use crate::network::{Contended, contend, max_min, models};
    #[pymodule_export]
    use crate::other_network::OtherNetwork;
    #[pymodule_export]
    use crate::patterns::{patterns, phases};
    #[pymodule_export]
    use crate::policy::{
        assumed_traffic, check_live, isolating_policies, linking_policies, policies, queues,
        traffic_policies,
    };
    #[pymodule_export]
    use crate::rank_k::{Profile, Rank, rank_k};
    #[pymodule_export]
    use crate::retrace::retrace;
    #[pymodule_export]
    use crate::routing::{Routing, routings};
    #[pymodule_export]
    use crate::run::{Outcome, simulate};
    #[pymodule_export]
    use crate::scheduler::Scheduler;
    #[pymodule_export]
    use crate::sites::{Cut, SiteChoice, SiteProgram, choose_sites, site_policies, smooth};
    #[pymodule_export]
    use crate::state::State;
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::tables::Loads;
    #[pymodule_export]
    use crate::traffic::Traffic;
    #[pymodule_export]
    use crate::views::{RequestView, StateView};
    #[pymodule_export]
    use crate::workload::{Workload, workload_presets};
}
