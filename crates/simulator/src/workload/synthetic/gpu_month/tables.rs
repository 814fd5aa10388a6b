//! Printed by `benches/gpu/month_parameters.py`; not changed by hand.

use super::Class;

/// Where the quantiles of run times are taken.
pub(super) const POSITIONS: [f64; 9] = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0];
/// Jobs of up to a node (Philly).
pub(super) const SMALL: [Class; 3] = [
    Class {
        sizes: &[(1, 65_940)],
        runs: [300.0, 581.0, 1_121.0, 2_474.0, 7_066.0, 29_441.0, 86_940.0, 604_800.0, 604_800.0],
    },
    Class {
        sizes: &[(2, 906)],
        runs: [
            309.0, 672.0, 3_082.0, 47_606.0, 219_249.0, 526_030.0, 604_800.0, 604_800.0, 604_800.0,
        ],
    },
    Class {
        sizes: &[(4, 4_507)],
        runs: [
            300.0, 742.0, 1_611.0, 18_884.0, 106_754.0, 267_518.0, 512_986.0, 604_800.0, 604_800.0,
        ],
    },
];
/// Wider jobs (Lingjun).
pub(super) const LARGE: [Class; 6] = [
    Class {
        sizes: &[(8, 360)],
        runs: [300.0, 360.0, 600.0, 1_380.0, 6_720.0, 33_900.0, 74_640.0, 390_780.0, 604_800.0],
    },
    Class {
        sizes: &[(12, 15), (16, 127)],
        runs: [300.0, 360.0, 600.0, 1_620.0, 7_020.0, 74_940.0, 149_820.0, 269_280.0, 604_800.0],
    },
    Class {
        sizes: &[(24, 15), (32, 278)],
        runs: [300.0, 360.0, 540.0, 2_220.0, 9_780.0, 19_380.0, 47_820.0, 204_660.0, 586_140.0],
    },
    Class {
        sizes: &[(40, 3), (48, 62), (56, 2), (60, 21), (64, 83)],
        runs: [300.0, 360.0, 540.0, 2_700.0, 19_320.0, 96_480.0, 154_740.0, 576_180.0, 604_800.0],
    },
    Class {
        sizes: &[(72, 12), (80, 14), (88, 16), (92, 1), (120, 2), (128, 9)],
        runs: [300.0, 300.0, 480.0, 2_280.0, 28_380.0, 85_980.0, 236_580.0, 412_620.0, 466_260.0],
    },
    Class {
        sizes: &[(256, 88), (400, 10), (448, 1), (464, 1), (504, 1), (512, 14), (744, 1)],
        runs: [300.0, 300.0, 360.0, 480.0, 840.0, 1_980.0, 10_860.0, 90_960.0, 151_140.0],
    },
];
/// How many times a GPU's part of the node's cores and memory small jobs ask for, and how many tasks do (openb).
pub(super) const DEMANDS: [(f64, u32); 4] = [(0.25, 661), (1.0, 2_520), (1.5, 646), (2.0, 84)];
/// Depth of the daily cycle of submissions (Philly).
pub(super) const DAILY: f64 = 0.30;
/// Submissions of a day of the weekend over those of a weekday (Philly).
pub(super) const WEEKEND: f64 = 0.47;
