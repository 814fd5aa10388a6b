//! Requests for nodes, the state of who holds what, and the policies that choose nodes.

mod amounts;
mod apart;
mod areas;
mod attributes;
mod choice;
mod decision;
pub mod dedicated;
mod demand;
mod detours;
mod dragonfly;
mod explain;
mod free_slots;
mod gpus;
mod group_costs;
mod homes;
mod hyperx;
mod job_traffic;
mod kept_bound;
mod least_sums;
mod level;
mod link_load;
mod making_room;
mod moves;
mod near;
mod network_load;
mod newcomer;
mod obstacles;
mod occupancy;
mod placement;
mod placing;
mod planned;
mod policy;
mod promise;
mod quality;
mod rails;
pub mod rank_k;
mod refusal;
mod registry;
mod request;
mod room;
mod service;
mod sharing;
mod torus;
mod what_if;
mod wirings;
mod within;

/// One file per policy.
pub mod policies;

pub use amounts::{Amounts, GpuPart, Lack, WHOLE_GPU};
pub use areas::{KeepOff, areas};
pub use attributes::Attributes;
pub use choice::Choice;
pub use decision::Decision;
pub use dedicated::{Lent, lend};
pub use demand::{Demand, DemandKind, SeenRequests};
pub use explain::Explanation;
pub use free_slots::FreeSlots;
pub use gpus::{GpuSet, MOST_GPUS};
pub use homes::Homes;
pub use job_traffic::{JobTraffic, LaidTraffic};
pub use level::{Level, NoLevel, NotWithin, Within};
pub use making_room::{
    CountedAmounts, Disruption, FreedAmounts, NoRoom, PresentJob, RoomEffort, RoomPlan,
    make_counted_room, make_room,
};
pub use moves::{MemberMove, RunningGroup, moves};
pub use near::place_near;
pub use network_load::NetworkLoad;
pub use obstacles::{Holder, Looking, Missing, Obstacle, kind_of_group};
pub use occupancy::{Occupancy, OccupancyError};
pub use placement::{Placement, crossed_groups, groups_crossed};
pub use planned::{LinkPlan, Planned};
pub use policies::homes;
pub use policy::{
    BetweenGroups, DedicatesLinks, HeadRule, PlansFirst, Policy, QueueRule, RoomHelps, SlotCosts,
    Traits,
};
pub use quality::{Quality, least_aph};
pub use rails::rails_of;
pub use refusal::Refusal;
pub use registry::{Gives, POLICIES, PolicyInfo, policy};
pub use request::{Request, Share};
pub use room::{DomainRoom, Fit, Room, RoomQuestion, Stranded};
pub use sharing::LinkUse;
pub use what_if::WhatIf;
pub use wirings::Wirings;
pub use within::place_within;
