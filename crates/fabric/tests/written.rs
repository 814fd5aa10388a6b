//! The output of the writers, word for word where people or other programs read it.
#![allow(clippy::unwrap_used)]

use topolane_fabric::{Fabric, MissingCable, pgft, preset, write};

fn tapered() -> Fabric {
    let mut machine = pgft("toy", &[2, 2, 2], &[1, 1, 1], &[1, 1, 1]);
    machine.sites[0].missing.push(MissingCable {
        level: 1,
        group: 3,
        switch: 0,
        parent: 0,
        cable: 0,
    });
    Fabric::build(&machine).unwrap()
}

#[test]
fn the_tree_of_cab_fits_on_a_screen() {
    let cab = Fabric::build(&preset("cab").unwrap().unwrap()).unwrap();
    assert_eq!(
        write::tree(&cab, 20),
        "\
cab: 1,296 nodes, 3 levels, 1 site
1,296 nodes of 2 sockets x 8 cores at 2.6 GHz, 32 GiB of memory, 1 NIC of 4 GB/s
site core: 1,296 nodes, 3 levels, PGFT(18,18,4; 1,18,2; 1,1,9)
  level 0 to 1: 1,296 cables of 4 GB/s
  level 1 to 2: 1,296 cables of 4 GB/s, taper 1.00
  level 2 to 3: 1,296 cables of 4 GB/s, taper 1.00

core: 1,296 nodes, 36 switches
  pod[0-3]: 324 nodes each, 18 switches each
    leaf[0-71]: 18 nodes each, cab[1-1296]
"
    );
}

#[test]
fn the_tree_says_what_is_missing_and_what_was_cut() {
    assert_eq!(
        write::tree(&tapered(), 2),
        "\
toy: 8 nodes, 3 levels, 1 site
8 nodes of 2 sockets x 8 cores at 2.6 GHz, 32 GiB of memory, 1 NIC of 4 GB/s
site core: 8 nodes, 3 levels, PGFT(2,2,2; 1,1,1; 1,1,1)
  level 0 to 1: 8 cables of 4 GB/s
  level 1 to 2: 4 cables of 4 GB/s, 1 missing, taper 0.50
  level 2 to 3: 2 cables of 4 GB/s, taper 0.50

core: 8 nodes
  pod[0-1]: 4 nodes each
... 1 line more
"
    );
}

#[test]
fn slurm_names_every_switch_after_those_below_it() {
    assert_eq!(
        write::slurm_topology(&tapered()),
        "\
SwitchName=leaf0 Nodes=toy[1-2]
SwitchName=leaf1 Nodes=toy[3-4]
SwitchName=pod0 Switches=leaf[0-1]
SwitchName=leaf2 Nodes=toy[5-6]
SwitchName=leaf3 Nodes=toy[7-8]
SwitchName=pod1 Switches=leaf[2-3]
SwitchName=core Switches=pod[0-1]
"
    );
}

#[test]
fn ibsim_gets_both_ends_of_every_cable() {
    let machine = pgft("toy", &[2, 2], &[1, 2], &[1, 1]);
    assert_eq!(
        write::ibsim_net(&Fabric::build(&machine).unwrap()),
        "\
# toy as an ibsim net, written by Topolane

Hca\t1 \"toy1\"
[1]\t\"leaf0\"[1]

Hca\t1 \"toy2\"
[1]\t\"leaf0\"[2]

Hca\t1 \"toy3\"
[1]\t\"leaf1\"[1]

Hca\t1 \"toy4\"
[1]\t\"leaf1\"[2]

Switch\t4 \"leaf0\"
[1]\t\"toy1\"[1]
[2]\t\"toy2\"[1]
[3]\t\"core-s0\"[1]
[4]\t\"core-s1\"[1]

Switch\t4 \"leaf1\"
[1]\t\"toy3\"[1]
[2]\t\"toy4\"[1]
[3]\t\"core-s0\"[2]
[4]\t\"core-s1\"[2]

Switch\t2 \"core-s0\"
[1]\t\"leaf0\"[3]
[2]\t\"leaf1\"[3]

Switch\t2 \"core-s1\"
[1]\t\"leaf0\"[4]
[2]\t\"leaf1\"[4]
"
    );
}
